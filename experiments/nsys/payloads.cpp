// In NVTX_EVENTS.binaryData stand, in 32 bytes, the domain, the schema, the bytes of the payload and all bytes, each
// little-endian in 8; then the payload.
#include "experiments/nsys/payloads.hpp"

#include <algorithm>
#include <array>

namespace manyworlds::experiments::nsys {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::int64_t kMaxOffset = 1 << 20;

/// Types of fields, as NVTX numbers them (NVTX_PAYLOAD_ENTRY_TYPE_*).
struct WholeType {
  std::int64_t number;
  std::size_t bytes;
  bool is_signed;
};
constexpr std::array kWholeTypes{WholeType{5, 4, true},   WholeType{6, 4, false},  WholeType{7, 8, true},
                                 WholeType{8, 8, false},  WholeType{9, 8, true},   WholeType{10, 8, false},
                                 WholeType{15, 4, true},  WholeType{16, 4, false}, WholeType{17, 8, true},
                                 WholeType{18, 8, false}, WholeType{22, 8, false}};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
  return value;
}

}  // namespace

Payloads::Payloads(const Database& database) {
  constexpr const char* kEntries = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
  if (!database.has(kEntries)) return;
  Rows rows = database.rows(kEntries,
                            {{"domainId", false}, {"schemaId"}, {"idx", false}, {"type"}, {"name"}, {"offset", false}});
  while (rows.next()) {
    const std::int64_t type = rows.whole(3, 0), offset = rows.whole(5, 0);  // that of the first is null
    const auto whole =
        std::find_if(kWholeTypes.begin(), kWholeTypes.end(), [&](const WholeType& one) { return one.number == type; });
    const auto name = rows.text(4);
    if (whole == kWholeTypes.end() || !name || offset < 0 || offset > kMaxOffset) continue;
    schemas_[{rows.whole(0, 0), rows.whole(1, 0)}].push_back(
        {std::string(*name), static_cast<std::size_t>(offset), whole->bytes, whole->is_signed});
  }
}

std::map<std::string, std::int64_t> Payloads::fields_of(std::string_view bytes) const {
  if (bytes.size() < kHeaderBytes) return {};
  const auto domain = static_cast<std::int64_t>(little_endian(bytes.substr(0, 4))),
             schema = static_cast<std::int64_t>(little_endian(bytes.substr(8, 8)));
  const auto known = schemas_.find({domain, schema});
  if (known == schemas_.end()) return {};
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (little_endian(bytes.substr(16, 8)) > payload.size()) return {};
  std::map<std::string, std::int64_t> fields;
  for (const Field& field : known->second) {
    if (field.offset + field.bytes > payload.size()) continue;
    std::uint64_t value = little_endian(payload.substr(field.offset, field.bytes));
    if (field.is_signed && field.bytes == 4)
      value = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
    fields[field.name] = static_cast<std::int64_t>(value);
  }
  return fields;
}

}  // namespace manyworlds::experiments::nsys
