// Payloads of NVTX ranges, as NCCL gives them (NVIDIA/nccl, src/include/nvtx_payload_schemas.h): fields that a schema
// in the same export names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/nsys/database.hpp"

namespace manyworlds::experiments::nsys {

class Payloads {
 public:
  /// Reads the schemas of an export, if it has any.
  explicit Payloads(const Database& database);

  /// Returns the whole numbers of a payload by the names of its fields. Empty for one whose schema is not known or
  /// whose bytes are not as many as that says.
  std::map<std::string, std::int64_t> fields_of(std::string_view bytes) const;

 private:
  struct Field {
    std::string name;
    std::size_t offset = 0, bytes = 0;
    bool is_signed = false;
  };
  using SchemaId = std::pair<std::int64_t, std::int64_t>;  // domain and schema

  std::map<SchemaId, std::vector<Field>> schemas_;
};

}  // namespace manyworlds::experiments::nsys
