// The document of `manyworlds phases`: one step of reinforcement learning as phases on pools of GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::phases {

enum class Kind : std::uint8_t { training, scoring, generation, transfer };
const std::vector<std::string>& kind_names();  // in the order of Kind

/// synchronous: an iteration begins when the one before it has ended. asynchronous: each pool goes on by itself, with
/// weights or responses of the iteration before.
enum class Schedule : std::uint8_t { synchronous, asynchronous };

/// How many tokens the responses of a rollout have: all as many, lognormal, or as a table counts them.
struct ResponseLengths {
  enum class Form : std::uint8_t { constant, lognormal, table } form = Form::constant;
  std::int64_t tokens = 0;      // constant
  double mean = 0, sigma = 0;   // lognormal: mean, and standard deviation of the logarithm
  std::string file;             // table (docs/formats.md): its path, as the document has it
  std::string path;             // the same from the folder of the document
  int line = 0;                 // of `file`
  std::int64_t seed = 1;        // of the order in which lengths come
  std::int64_t max_tokens = 0;  // none is longer; 0: no limit
};

struct Rollout {
  std::int64_t prompts = 0;    // of an iteration
  std::int64_t responses = 1;  // of each prompt
  std::int64_t prompt_tokens = 0;
  ResponseLengths lengths;
  std::int64_t concurrent = 0;         // samples that a replica decodes at once, at most
  std::int64_t prefill_tokens = 8192;  // that a replica computes at once, but always one prompt

  std::int64_t samples() const { return prompts * responses; }
};

struct Phase {
  std::string name;
  Kind kind = Kind::training;
  std::size_t pool = 0;             // index into PhasesFile::pools; of a transfer that of `to`
  std::int64_t steps = 1;           // of training and scoring: the phase is so many steps of its experiment
  std::optional<bool> resident;     // whether weights (and states) stay on the GPUs in other phases
  std::vector<std::size_t> after;   // phases that it waits for
  import::Node change;              // what it changes of the document's `base`; a mapping, maybe empty
  Rollout rollout;                  // of generation
  std::optional<std::size_t> from;  // of a transfer: the phase whose weights go; of scoring: whose weights it uses
  std::size_t to = 0;               // of a transfer: the phase of the replicas that get them
  std::int64_t bucket_bytes = std::int64_t{512} << 20;  // of a transfer: that are gathered and sent at once
  bool all_trainers = false;                            // of a transfer to another pool: they are in the broadcast
  import::Node place;                                   // of the phase, without content
  std::map<std::string, int> lines;                     // of its keys

  bool has_experiment() const { return kind != Kind::transfer; }
};

struct Pool {
  std::string name;
  std::int64_t gpus = 0;  // 0: all of the cluster
  int line = 0;
};

struct PhasesFile {
  std::string file;  // its name in messages
  std::string text;  // verbatim
  std::string title;
  import::Node base;      // of all phases
  import::Node practice;  // `assume`; null if it is not given
  Schedule schedule = Schedule::synchronous;
  std::vector<Pool> pools;  // at least one
  std::vector<Phase> phases;

  /// Throws InputError at a key of a phase, or at the phase if it has not this key.
  [[noreturn]] void fail(const Phase& phase, const std::string& key, const std::string& what) const;
};

/// Parses a document; a relative path of a table starts from the folder of `name`. Throws InputError with file, line
/// and key for keys that nobody knows or that are another kind's, for values out of range, for pools and phases that
/// do not exist, and for a document without phases.
PhasesFile parse_phases(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::phases
