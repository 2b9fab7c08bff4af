// The opcodes of pickles (Lib/pickletools.py of CPython).
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::experiments::nccl_logs {

/// Those of which plain values consist.
enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  frame = 0x95,
  proto = 0x80,
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  bin_float = 'G',
  bin_unicode = 'X',
  short_bin_unicode = 0x8c,
  bin_unicode8 = 0x8d,
  bin_bytes = 'B',
  short_bin_bytes = 'C',
  bin_bytes8 = 0x8e,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  set_item = 's',
  set_items = 'u',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  bin_put = 'q',
  long_bin_put = 'r',
  memoize = 0x94,
  bin_get = 'h',
  long_bin_get = 'j'
};

/// Returns the name of any other opcode; its code if it has none.
std::string name_of_other(std::uint8_t opcode);

}  // namespace manyworlds::experiments::nccl_logs
