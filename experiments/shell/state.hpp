// What is known while a script is followed: variables, functions, arguments. A text may have unknown parts, each with
// the reason why it is not known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/shell/script.hpp"

namespace manyworlds::experiments::shell {

/// A place in one of the files that were read.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0;
};

/// A text and where it is written. Unknown parts are marks, see unknown().
struct Text {
  std::string text;
  Place place;
};

/// What encloses the reason of an unknown part; no text file that is read here may have these characters.
inline constexpr char kMarkBegin = '\x01', kMarkEnd = '\x02';

/// Returns a text that stands for an unknown one; `why` tells the user what it would follow from.
std::string unknown(const std::string& why);
bool is_known(std::string_view text);
/// Returns why the first unknown part of a text is not known; empty if all is known.
std::string why_unknown(std::string_view text);
/// Returns the text for messages: unknown parts are "?".
std::string shown(std::string_view text);

/// Whether a condition holds.
enum class Truth : std::uint8_t { no, yes, unknown };
Truth truth(bool holds);
Truth operator!(Truth one);

struct Variable {
  std::vector<Text> items;  // one, unless it is an array
  bool array = false;
};

struct State {
  std::map<std::string, Variable> variables;
  std::map<std::string, std::shared_ptr<const Command>> functions;
  std::vector<Text> arguments;  // $1, $2, …
  bool ended = false;           // by exit
  bool left = false;            // a function or sourced file, by return
  bool broken = false;          // a loop, by break or continue

  bool stopped() const { return ended || left || broken; }
};

/// Returns what is known after one of two branches was taken, and nobody knows which: a variable that differs is
/// unknown because of `why`. A branch that ended is left out.
State merged(State one, State other, const std::string& why);

/// Approximate size of a state, which bounds what a copy costs.
std::size_t size_of(const State& state);

}  // namespace manyworlds::experiments::shell
