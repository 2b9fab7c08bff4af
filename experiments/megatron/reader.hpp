// Converts the arguments of Megatron-LM to settings.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/model_keys/carried.hpp"

namespace manyworlds::experiments::jobs {

class MegatronReader {
 public:
  MegatronReader(const JobArguments& arguments, const JobOptions& options, const Catalog& catalog);

  Job read();

 private:
  // What was given.
  const Argument* find(const std::string& name) const;
  bool given(const std::string& name) const { return find(name) != nullptr; }
  const Argument* first_of(const std::vector<std::string>& names) const;
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  std::int64_t count(const std::string& name, std::int64_t otherwise) const;
  std::vector<std::string> words(const std::string& name) const;
  const Place& place(const std::string& name) const;
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;

  void set(const std::string& key, const std::string& value, const std::string& because = "");
  void set(const std::string& key, std::int64_t value, const std::string& because = "");
  void note(const std::string& what) { job_.notes.push_back(what); }

  void check_arguments();
  void carry(const Argument& argument);
  void read_carried();
  void read_direct();
  // read_model.cpp
  void read_model();
  void read_feed_forward();
  void read_vocabulary();
  void read_heads();
  void read_position();
  void read_dropout();
  void read_window();
  void read_latent_attention();
  void read_experts();
  void read_expert_layers();
  void read_expert_groups();
  void read_dispatcher();
  // read_layout.cpp
  void read_gpus();
  void read_layout();
  void read_batch();
  void read_stages();
  bool read_stage_layout();
  void read_uneven_stages(std::int64_t chunks);
  void set_stages(std::int64_t chunks, const std::string& because);
  void read_recompute();
  std::vector<std::string> modules_in(const char* name, const std::vector<std::string>& known) const;
  void read_recompute_modules();
  void read_offload();
  void read_sharding();
  // read_stack.cpp
  void read_stack();
  void read_loss();
  void read_software();
  void read_attention();
  void read_unfused_softmax(bool engine);
  void read_precision();
  void read_reduction();
  void read_overlap();
  void read_graphs();

  const JobArguments& arguments_;
  const JobOptions& options_;
  const Catalog& catalog_;
  Job job_;
  std::vector<models::CarriedArgument> carried_;
  std::map<std::string, const Argument*> given_;
  Place nowhere_;
  bool experts_ = false, latent_ = false, legacy_ = false, fused_ = true;
  std::int64_t layers_ = 0, heads_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, zero_ = 0;
};

}  // namespace manyworlds::experiments::jobs
