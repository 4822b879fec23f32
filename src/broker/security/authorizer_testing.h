// Authorizers for tests.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/security/authorizer.h"

namespace varve::broker {

// Allows nothing but what the test says, and keeps what it was asked for.
class DenyEverything final : public Authorizer {
 public:
  using Question = std::pair<Operation, ResourceType>;

  bool allows(const AccessRequest& request) const override {
    std::lock_guard lock(mutex_);
    asked_.emplace_back(request.operation, request.type);
    return allowed_.contains({request.operation, request.type});
  }
  bool allows_any(const Principal&, std::string_view, Operation operation, ResourceType type) const override {
    std::lock_guard lock(mutex_);
    asked_.emplace_back(operation, type);
    return allowed_.contains({operation, type});
  }

  void allow(Operation operation, ResourceType type) {
    std::lock_guard lock(mutex_);
    allowed_.insert({operation, type});
  }
  void deny_again() {
    std::lock_guard lock(mutex_);
    allowed_.clear();
  }
  // Since the last call, in their order.
  std::vector<Question> take_asked() {
    std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Question> asked_;
  std::set<Question> allowed_;
};

}  // namespace varve::broker
