// DeepSpeed's configuration: what its JSON says of batch, sharding and precision.
#pragma once

#include <optional>
#include <string>

#include "experiments/jobs/given_keys.hpp"

namespace manyworlds::experiments::jobs::deepspeed {

/// What a batch is divided into. Returned by batch_of() with all three sizes.
struct Batch {
  std::int64_t global = 0, micro = 0, accumulation = 0;  // 0: not known
};

class DsConfig {
 public:
  /// Parses JSON; `first_line` is the line of the file on which it begins. Throws InputError for what is no JSON, by
  /// name for placeholders of a template, and for what is not modelled.
  DsConfig(const std::string& text, const std::string& path, int first_line, Job& job);

  /// Returns the batch on so many data-parallel ranks; sizes that nobody can tell are 0. Throws InputError if the sizes
  /// contradict one another.
  Batch batch_of(std::int64_t replicas) const;
  /// Adds the settings of sharding and precision to a job. `hidden` is the model's width, 0 if it is not known.
  void add_settings(Job& job, std::int64_t replicas, std::int64_t hidden) const;

  const GivenKeys& keys() const { return keys_; }
  std::int64_t stage() const { return keys_.count("zero_optimization.stage", 0); }
  std::string precision() const;

 private:
  std::int64_t size(const std::string& name) const;
  std::int64_t bucket(std::int64_t hidden, Job& job) const;

  GivenKeys keys_;
};

}  // namespace manyworlds::experiments::jobs::deepspeed
