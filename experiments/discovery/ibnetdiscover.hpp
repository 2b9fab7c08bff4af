// What ibnetdiscover and iblinkinfo print: every port of an InfiniBand subnet with what it is cabled to.
#pragma once

#include <string>
#include <string_view>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

/// Return whether a text is what that tool prints.
bool is_ibnetdiscover(std::string_view text);
bool is_iblinkinfo(std::string_view text);

/// Return the fabric; `name` is the file name in messages. Throw InputError, with the line, for a text that is torn or
/// contradicts itself.
Fabric parse_ibnetdiscover(std::string_view text, const std::string& name);
Fabric parse_iblinkinfo(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::clusters
