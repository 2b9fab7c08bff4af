// What a Hugging Face configuration is refused with.
#pragma once

#include <string>

#include "experiments/models/read_model_config.hpp"
#include "experiments/text/listed_error.hpp"

namespace manyworlds::experiments::testing {

/// Returns the message that reading a configuration ends in, with its list; "(no error)" where it is read.
inline std::string config_refusal(const std::string& text, const std::string& file = "config.json",
                                  const std::string& member = {}) {
  try {
    models::parse_model_config(text, file, member);
  } catch (const ListedError& error) {
    std::string said = error.what();
    for (const std::string& item : error.items()) said += "\n" + item;
    return said;
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace manyworlds::experiments::testing
