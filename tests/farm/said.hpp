// What a line of the command line prints, and the exit code that scripts see.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "farm/verbs/entry/command_line.hpp"

namespace manyworlds::farm::testing {

struct Said {
  int exit_code;
  std::string output;
};

inline Said say(std::vector<std::string> words) {
  words.insert(words.begin(), "manyworlds");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  std::ostringstream captured;
  auto* before = std::cout.rdbuf(captured.rdbuf());
  const int code = command_line(static_cast<int>(arguments.size()), arguments.data());
  std::cout.rdbuf(before);
  return {code, captured.str()};
}

}  // namespace manyworlds::farm::testing
