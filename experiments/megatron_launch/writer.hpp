// Converts settings to the arguments of Megatron-LM.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron_launch/megatron_launch.hpp"

namespace manyworlds::experiments::jobs {

class MegatronWriter {
 public:
  explicit MegatronWriter(const Settings& experiment);

  MegatronLaunch write();

 private:
  using Keys = std::vector<std::string>;

  /// Adds an argument to the part being written.
  void add(const std::string& name, const std::string& value, Keys keys);
  void add(const std::string& name, std::int64_t value, Keys keys);
  void add_switch(const std::string& name, Keys keys);
  void add_several(const std::string& name, std::vector<std::string> values, Keys keys);
  /// Says what no argument expresses.
  void note(const std::string& key, const std::string& what);
  std::string value(const std::string& key) const { return text_of(experiment_, key); }

  void write_direct(const std::string& prefix);
  bool is_silent(const KnownName& known) const;
  // write_model.cpp
  void write_model();
  void write_vocabulary();
  void write_heads();
  void write_position();
  void write_window();
  void write_latent_attention();
  void write_experts();
  void write_carried();
  // write_layout.cpp
  void write_layout();
  void write_stages();
  void write_stage_layers(const std::vector<std::int64_t>& stages);
  void write_recompute();
  void write_old_recompute();
  void write_offload();
  void write_sharding();
  // write_stack.cpp
  void write_stack();
  void write_precision();
  void write_attention();
  void write_reduction();
  void write_graphs();
  void write_dispatcher();

  const Settings& experiment_;
  ExperimentConfig config_;
  const core::workload::Model& model_;
  const core::workload::Strategy& strategy_;
  const core::workload::Stack& stack_;
  bool legacy_ = false;  // Megatron-LM of 2021
  MegatronLaunch launch_;
  std::vector<LaunchArgument>* part_ = nullptr;
};

}  // namespace manyworlds::experiments::jobs
