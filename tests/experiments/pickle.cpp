// Pickles of plain values, written by hand byte by byte as Lib/pickletools.py describes them.
#include "experiments/nccl_logs/pickle.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "tests/experiments/given_steps.hpp"

using namespace std::string_literals;
using manyworlds::experiments::nccl_logs::parse_pickle;
using manyworlds::tests::error_of;
using nlohmann::json;

namespace {

json parsed(const std::string& opcodes, const std::vector<std::string>& left_out = {}) {
  return parse_pickle("\x80\x02"s + opcodes + ".", "dump", left_out);
}
std::string refusal(const std::string& bytes) {
  return error_of([&] { parse_pickle(bytes, "dump"); });
}

}  // namespace

TEST_CASE("each opcode of plain values gives its value") {
  CHECK(parsed("N").is_null());
  CHECK(parsed("\x88") == true);
  CHECK(parsed("\x89") == false);
  CHECK(parsed("K\xff") == 255);
  CHECK(parsed("M\x01\x02") == 513);
  CHECK(parsed("J\xfe\xff\xff\xff") == -2);
  CHECK(parsed("\x8a\x08\x15\x81\xe9\x7d\xf4\x10\x22\x11"s) == 1234567890123456789);
  CHECK(parsed("\x8a\x01\x80"s) == -128);
  CHECK(parsed("\x8a\x00"s) == 0);
  CHECK(parsed("\x8b\x02\x00\x00\x00\x00\x01"s) == 256);
  CHECK(parsed("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s) == 1.5);
  CHECK(parsed("X\x02\x00\x00\x00no"s) == "no");
  CHECK(parsed("\x8c\x03yes"s) == "yes");
  CHECK(parsed("\x8d\x01\x00\x00\x00\x00\x00\x00\x00z"s) == "z");
  CHECK(parsed("C\x02"
               "ab") == "ab");
  CHECK(parsed("B\x01\x00\x00\x00q"s) == "q");
  CHECK(parsed("]") == json::array());
  CHECK(parsed(")") == json::array());
  CHECK(parsed("}") == json::object());
  CHECK(parsed("]K\x01"
               "a") == json{1});
  CHECK(parsed("](K\x01K\x02"
               "e") == json{1, 2});
  CHECK(parsed("K\x01\x85") == json{1});
  CHECK(parsed("K\x01K\x02\x86") == json{1, 2});
  CHECK(parsed("K\x01K\x02K\x03\x87") == json{1, 2, 3});
  CHECK(parsed("(K\x04K\x05t") == json{4, 5});
  CHECK(parsed("}\x8c\x01kK\x07s") == json{{"k", 7}});
  CHECK(parsed("}(K\x01K\x02\x8c\x01kNu") == json{{"1", 2}, {"k", nullptr}});
}

TEST_CASE("what is stored stands wherever it is referred to, with what was added to it later") {
  CHECK(parsed("](]q\x01h\x01h\x01"
               "e") == json{json::array(), json::array(), json::array()});
  CHECK(parsed("]q\x05K\x01"
               "ah\x05\x86") == json{{1}, {1}});
  CHECK(parsed("]r\x00\x01\x00\x00j\x00\x01\x00\x00\x86"s) == json{json::array(), json::array()});
  // Protocol 4: frames, and the memo counted.
  CHECK(parse_pickle("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x01"
                     "a\x94h\x00\x86\x94."s,
                     "dump") == json{"a", "a"});
  CHECK(parsed("}(\x8c\x06"
               "frames](K\x01"
               "e\x8c\x01kK\x02u",
               {"frames"}) == json{{"frames", nullptr}, {"k", 2}});
}

TEST_CASE("nothing that names or calls code is run") {
  CHECK(refusal("\x80\x02"
                "cos\nsystem\n(X\x02\x00\x00\x00lstR."s) ==
        "dump: has the opcode GLOBAL, which plain values do not need: it is not run, at byte 2");
  for (const auto& [opcode, name] : std::vector<std::pair<std::string, std::string>>{{"R", "REDUCE"},
                                                                                     {"\x93", "STACK_GLOBAL"},
                                                                                     {"b", "BUILD"},
                                                                                     {"i", "INST"},
                                                                                     {"o", "OBJ"},
                                                                                     {"\x81", "NEWOBJ"},
                                                                                     {"\x92", "NEWOBJ_EX"},
                                                                                     {"P", "PERSID"},
                                                                                     {"Q", "BINPERSID"},
                                                                                     {"\x82", "EXT1"},
                                                                                     {"\x98", "READONLY_BUFFER"},
                                                                                     {"\xf0", "0xf0"}})
    CHECK(refusal("\x80\x02"
                  "NN" +
                  opcode + ".")
              .find("the opcode " + name + ",") != std::string::npos);
}

TEST_CASE("what is no whole pickle is refused with its place") {
  CHECK(refusal("{}") == "dump: is no pickle of protocol 2 to 5");
  CHECK(refusal("\x80\x02") == "dump: is torn: it ends in an operation that begins at byte 2");
  CHECK(refusal("\x80\x02"
                "X\x09\x00\x00\x00short"s)
            .find("is torn") != std::string::npos);
  CHECK(refusal("\x80\x02"
                "NN.")
            .find("other than one value") != std::string::npos);
  CHECK(refusal("\x80\x02"
                "a.")
            .find("needs a value") != std::string::npos);
  CHECK(refusal("\x80\x02"
                "]K\x01"
                "e.")
            .find("needs a mark") != std::string::npos);
  CHECK(refusal("\x80\x02NNa.").find("appends to what is no list") != std::string::npos);
  CHECK(refusal("\x80\x02h\x01.").find("refers to value 1") != std::string::npos);
  CHECK(refusal("\x80\x02}]Ns.").find("neither a text nor a whole number") != std::string::npos);
  CHECK(refusal("\x80\x02\x8a\x09"
                "123456789.")
            .find("beyond 64 bits") != std::string::npos);
  CHECK(refusal("\x80\x02\x8c\x01\xff.").find("no UTF-8") != std::string::npos);
  CHECK(refusal("\x80\x02]q\x01h\x01"
                "a.")
            .find("deeper than 64") != std::string::npos);  // a list in itself
}

TEST_CASE("a pickle that would grow without bound where it is written out is refused") {
  // Lists of a hundred references to the list before: 10^10 values in a kilobyte.
  std::string bytes = "\x80\x02]q" + std::string(1, '\0') + "0";
  bytes.pop_back();
  for (char level = 0; level < 5; ++level) {
    bytes += "](";
    for (int i = 0; i < 100; ++i) bytes += "h" + std::string(1, level);
    bytes += "eq" + std::string(1, static_cast<char>(level + 1));
  }
  bytes += "\x87.";  // of the last three lists on the stack
  CHECK(refusal(bytes).find("other than one value") != std::string::npos);
  // All of them in one tuple.
  std::string tuple = "\x80\x02(" + bytes.substr(2, bytes.size() - 4) + "t.";
  CHECK(refusal(tuple).find("more than 50000000 values") != std::string::npos);
}
