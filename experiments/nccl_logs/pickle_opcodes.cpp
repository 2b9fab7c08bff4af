#include "experiments/nccl_logs/pickle_opcodes.hpp"

#include <fmt/format.h>

#include <array>

namespace manyworlds::experiments::nccl_logs {
namespace {

struct NamedOpcode {
  std::uint8_t code;
  const char* name;
};
constexpr std::array kOthers{
    NamedOpcode{'0', "POP"},         NamedOpcode{'1', "POP_MARK"},     NamedOpcode{'2', "DUP"},
    NamedOpcode{'F', "FLOAT"},       NamedOpcode{'I', "INT"},          NamedOpcode{'L', "LONG"},
    NamedOpcode{'P', "PERSID"},      NamedOpcode{'Q', "BINPERSID"},    NamedOpcode{'R', "REDUCE"},
    NamedOpcode{'S', "STRING"},      NamedOpcode{'T', "BINSTRING"},    NamedOpcode{'U', "SHORT_BINSTRING"},
    NamedOpcode{'V', "UNICODE"},     NamedOpcode{'b', "BUILD"},        NamedOpcode{'c', "GLOBAL"},
    NamedOpcode{'d', "DICT"},        NamedOpcode{'g', "GET"},          NamedOpcode{'i', "INST"},
    NamedOpcode{'l', "LIST"},        NamedOpcode{'o', "OBJ"},          NamedOpcode{'p', "PUT"},
    NamedOpcode{0x81, "NEWOBJ"},     NamedOpcode{0x82, "EXT1"},        NamedOpcode{0x83, "EXT2"},
    NamedOpcode{0x84, "EXT4"},       NamedOpcode{0x8f, "EMPTY_SET"},   NamedOpcode{0x90, "ADDITEMS"},
    NamedOpcode{0x91, "FROZENSET"},  NamedOpcode{0x92, "NEWOBJ_EX"},   NamedOpcode{0x93, "STACK_GLOBAL"},
    NamedOpcode{0x96, "BYTEARRAY8"}, NamedOpcode{0x97, "NEXT_BUFFER"}, NamedOpcode{0x98, "READONLY_BUFFER"}};

}  // namespace

std::string name_of_other(std::uint8_t opcode) {
  for (const NamedOpcode& one : kOthers)
    if (one.code == opcode) return one.name;
  return fmt::format("0x{:02x}", opcode);
}

}  // namespace manyworlds::experiments::nccl_logs
