// The bucket that the settings name.
#pragma once

#include "base/result.h"
#include "broker/settings/settings.h"
#include "object_store/s3/s3_options.h"

namespace varve::broker {

// settings.s3.bucket is set. The error names the setting that is missing or wrong; secrets stay out of it.
Result<object_store::s3::S3Options, SettingsError> s3_options_of(const Settings& settings);

}  // namespace varve::broker
