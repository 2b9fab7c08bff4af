// A job whose tasks are hashes of hashes: what a plain loop gives is plain to see, and any mix-up shows.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "farm/protocol/job.hpp"

namespace manyworlds::farm::synthetic {

inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// serialized text: "tasks=N us=U crash=T throw=T": every task works for about U microseconds; the task
/// `crash` always dies by SIGSEGV, `throw` throws. Absent figures mean none.
struct Shape {
  std::uint32_t tasks = 0;
  std::uint64_t us = 0, seed = 1;
  std::int64_t crash = -1, throws = -1;

  static Shape parse(const std::string& serialized) {
    Shape shape;
    std::istringstream words(serialized);
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) throw std::runtime_error("no '=' in " + word);
      const std::string key = word.substr(0, equals);
      const std::int64_t value = std::stoll(word.substr(equals + 1));
      if (key == "tasks")
        shape.tasks = static_cast<std::uint32_t>(value);
      else if (key == "us")
        shape.us = static_cast<std::uint64_t>(value);
      else if (key == "seed")
        shape.seed = static_cast<std::uint64_t>(value);
      else if (key == "crash")
        shape.crash = value;
      else if (key == "throw")
        shape.throws = value;
      else
        throw std::runtime_error("unknown key " + key);
    }
    return shape;
  }
};

class SyntheticJob final : public Job {
 public:
  explicit SyntheticJob(const std::string& serialized) : serialized_(serialized), shape_(Shape::parse(serialized)) {
    for (std::uint32_t number = 0; number < shape_.tasks; ++number) {
      Task task;
      task.key.digest = {mix(shape_.seed * 1'000'003 + number), mix(number + 77)};
      task.key.check = {mix(number + 1), shape_.seed};
      task.key.length = 8;
      task.cost = static_cast<double>(mix(number ^ (shape_.seed << 20)) % 1000);
      task.storable = number % 2 == 0;
      // The last third needs results of the first two, a few each.
      if (number > 2 * shape_.tasks / 3)
        for (std::uint64_t i = 0; i < 1 + number % 4; ++i)
          task.inputs.push_back(static_cast<std::uint32_t>(mix(number * 31 + i) % number));
      tasks_.push_back(task);
    }
  }

  const std::vector<Task>& tasks() const override { return tasks_; }
  std::string common_spec() const override { return serialized_; }
  std::string spec(std::uint32_t task) const override { return std::to_string(task); }

 private:
  std::string serialized_;
  Shape shape_;
  std::vector<Task> tasks_;
};

class SyntheticRunner final : public Runner {
 public:
  explicit SyntheticRunner(const std::string& common_spec) : shape_(Shape::parse(common_spec)) {}

  std::string run(const std::string& spec, std::span<const std::string> inputs) override {
    const auto number = static_cast<std::uint32_t>(std::stoul(spec));
    if (number == shape_.crash) ::raise(SIGSEGV);
    if (number == shape_.throws) throw std::runtime_error("this task throws");
    if (shape_.us > 0) ::usleep(static_cast<useconds_t>(mix(number) % (2 * shape_.us)));
    std::uint64_t hash = mix(number + shape_.seed);
    for (const auto& input : inputs)
      for (const char byte : input) hash = mix(hash * 257 + static_cast<unsigned char>(byte));
    return spec + ":" + std::to_string(hash);
  }

 private:
  Shape shape_;
};

inline JobKind jobs() {
  return {[](const std::string& serialized) { return std::make_unique<SyntheticJob>(serialized); },
          [](const std::string& common_spec, const RunnerOptions&) {
            return std::make_unique<SyntheticRunner>(common_spec);
          }};
}

/// The oracle: one task after the other in a plain loop.
inline std::vector<std::string> plain_loop(const std::string& serialized) {
  const SyntheticJob job(serialized);
  SyntheticRunner runner(job.common_spec());
  std::vector<std::string> results;
  for (std::uint32_t number = 0; number < job.tasks().size(); ++number) {
    std::vector<std::string> inputs;
    for (const auto input : job.tasks()[number].inputs) inputs.push_back(results[input]);
    results.push_back(runner.run(job.spec(number), inputs));
  }
  return results;
}

}  // namespace manyworlds::farm::synthetic
