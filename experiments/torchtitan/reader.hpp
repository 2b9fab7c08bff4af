// Converts the keys of torchtitan's job file to settings.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/given_keys.hpp"
#include "experiments/torchtitan/flavors.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

/// Differences between versions that no key tells.
struct Version {
  std::string kind;                  // of file, for messages
  bool graphs_by_default = false;    // CUDA graphs launch a step unless they are disabled (2026)
  bool flexible_by_default = false;  // attention is FlexAttention (2026)
  std::vector<Flavor> own = {};      // flavors that the file itself describes
  bool experts_whole = false;        // an expert is never sharded beside expert parallelism (2026)
  std::string old_key = {};          // a key that no version since v0.2.0 has; empty: none is given
};

class Reader {
 public:
  Reader(const std::vector<GivenKey>& keys, Version version, const JobOptions& options);

  Job read();

 private:
  void set(const std::string& key, const std::string& value, const std::string& because = "");
  void set(const std::string& key, std::int64_t value, const std::string& because = "");
  void set_flag(const std::string& key, bool value, const std::string& because = "");
  void note(const std::string& what) { job_.notes.push_back(what); }

  // reader.cpp
  void read_model();
  const Flavor& flavor() const;
  void read_software();
  void read_attention();
  void read_optimizer();
  void read_precision();
  std::vector<std::string> converters() const;
  void read_experts();
  void read_recompute();
  void read_layer_recompute(const std::string& option);
  // read_parallelism.cpp
  void read_ranks();
  void read_world();
  void read_sharding();
  void check_mixed_precision() const;
  void read_batch();
  void read_pipelined_batch(std::int64_t local);
  void read_pipeline();
  std::int64_t stages_of_rank(bool several);
  void set_stages(const std::vector<std::int64_t>& layers, const std::string& because);
  bool read_written_stages();
  std::vector<std::vector<std::string>> written_parts() const;

  Version version_;
  GivenKeys keys_;
  const JobOptions& options_;
  Job job_;
  const Flavor* flavor_ = nullptr;
  std::int64_t tp_ = 1, pp_ = 1, cp_ = 1, ep_ = 1, etp_ = 1, replicate_ = 1, shard_ = -1;
  std::vector<std::int64_t> stage_layers_;
  bool compiled_ = false;
};

}  // namespace manyworlds::experiments::jobs::torchtitan
