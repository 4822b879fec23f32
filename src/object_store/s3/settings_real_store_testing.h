// Where a real store is that the conformance suite is to run against; tests/e2e/test_s3.py says so.
#pragma once

#include <optional>

#include "object_store/s3/s3_options.h"

namespace varve::object_store::s3 {

// The bucket "conformance" at VARVE_S3_ENDPOINT, with the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; nullopt: no
// endpoint is set.
std::optional<S3Options> real_store_wanted();

}  // namespace varve::object_store::s3
