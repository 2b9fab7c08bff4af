// Tables that choose collective algorithms by size, as NCCL's example tuner plugin reads them (ext-tuner/example of
// NCCL 2.29, README.md and plugin.c). docs/model/collectives.md describes what each column means here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/collective/library/tuner_rules.hpp"

namespace manyworlds::experiments::import {

struct TunerFile {
  /// A line that is for no collective of any simulation, and why.
  struct Idle {
    int line = 0;
    std::string why;
  };
  std::vector<core::collective::TunerRule> rules;  // in their order: the first that matches decides
  std::vector<Idle> idle;
};

/// Parses a table; `name` is the file name in messages. Throws InputError with the line for a line that has not 8 to 10
/// columns, or in one of them what is neither a name nor a number that it may have; for an algorithm that is not
/// modelled; and for a table without any line.
TunerFile parse_tuner_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
