// Settings of frameworks that run Megatron-Core, under their own names, as the arguments of Megatron-LM that they are.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {

struct Dialect {
  KnownNames names;  // in their `values` "-" stands for an argument that is not given, and "*" is any other word
  std::vector<std::string> sections = {};  // whose names are Megatron-LM's own: "model." or "" for all
  bool from_environment = false;           // its names are variables, which --env gives
};

/// Collects what a job's file sets, the last of each name, and counts it by what follows from it.
class DialectReader {
 public:
  explicit DialectReader(const Dialect& dialect) : dialect_(dialect) {}

  /// Sets what a name stands for. Throws InputError at the value for a name that is not known, with the nearest that
  /// is, and for a value that is not modelled.
  void add(const std::string& name, const import::Node& value);
  /// Sets an argument that nothing in the file says: a default of the framework's own.
  void assume(const std::string& argument, const std::string& value = "");
  bool has(const std::string& argument) const { return arguments_.count(argument) > 0; }
  /// Returns the value of an argument; empty if it is not given or a switch.
  std::string text(const std::string& argument) const;
  /// Returns whether a name is one of the dialect's tables or sections.
  bool knows(const std::string& name) const;
  [[noreturn]] void fail_unknown(const std::string& name, const Place& place) const;

  /// Adds all to `to`, and what was noted.
  void finish(JobArguments& to) const;
  /// Sets the counts of a job: of names in its file, not of what was assumed.
  void count(Job& job) const;

 private:
  void put(const std::string& name, const std::string& argument, std::vector<Text> values, const Place& place);
  void add_mapped(const KnownName& known, const import::Node& value);
  void add_own(const std::string& name, const std::string& own, const import::Node& value);
  void judge(const std::string& name, const KnownName& known, const import::Node& value);
  /// Returns the part of a name that is Megatron-LM's own; empty if it has none.
  std::string own_name(const std::string& name) const;

  const Dialect& dialect_;
  std::map<std::string, Argument> arguments_;
  std::map<std::string, std::string> noted_;  // why, by name
  std::set<std::string> mapped_, irrelevant_;
};

/// Calls `visit` with the name, joined by dots, of every value of a mapping that is no mapping itself.
void visit_leaves(const import::Node& mapping, const std::string& prefix,
                  const std::function<void(const std::string& name, const import::Node& value)>& visit);

}  // namespace manyworlds::experiments::jobs
