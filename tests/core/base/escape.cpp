// Text on its way out: whatever bytes it is made of, its reader sees text.
#include "core/base/escape.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace manyworlds::core;

namespace {

const std::string kOverride = "\xe2\x80\xae";  // U+202E, right-to-left from here

/// What bash takes `line` for: its words, told back with a NUL behind each.
std::vector<std::string> words_by_bash(const std::string& line) {
  std::FILE* pipe = ::popen(("exec bash -c " + shell_quoted("printf '%s\\0' " + line)).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) said.append(buffer.data(), got);
  REQUIRE(::pclose(pipe) == 0);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < said.size(); at = said.find('\0', at) + 1) words.emplace_back(said.c_str() + at);
  return words;
}

}  // namespace

TEST_CASE("text without control characters reaches a terminal as it is") {
  for (const std::string text : {"", "plain", "größer – 80 %", "two\nlines\tand a tab", "ends as on Windows\r\n", "ⁿ𝄞"})
    CHECK(terminal_text(text) == text);
}

TEST_CASE("what a terminal would obey, and what turns the direction of writing, is shown as JSON escapes it") {
  CHECK(terminal_text("\x1b[31mred\a\r") == "\\u001b[31mred\\u0007\\u000d");
  CHECK(terminal_text(std::string("\0\x7f", 2)) == "\\u0000\\u007f");
  CHECK(terminal_text("\xc2\x9b"
                      "2J") == "\\u009b2J");  // the CSI of C1
  CHECK(terminal_text("abc" + kOverride + "fed") == "abc\\u202efed");
  for (const char* odd : {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9",
                          "\xe2\x80\xa8", "\xe2\x80\xa9"})
    CHECK(terminal_text(odd).starts_with("\\u"));
}

TEST_CASE("bytes that are no UTF-8 are shown one by one") {
  CHECK(terminal_text("a\xff"
                      "b") == "a\\xffb");
  CHECK(terminal_text("\x9b") == "\\x9b");           // C1 as some terminals take it
  CHECK(terminal_text("\xc0\x9b") == "\\xc0\\x9b");  // longer than need be
  CHECK(terminal_text("\xe0\x80\x9b") == "\\xe0\\x80\\x9b");
  CHECK(terminal_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair of UTF-16
  CHECK(terminal_text("\xf5\x80\x80\x80") == "\\xf5\\x80\\x80\\x80");
  CHECK(terminal_text("\xe2\x80") == "\\xe2\\x80");  // cut
}

TEST_CASE("a line stays one line") {
  CHECK(line_text("one\ntwo\r\nthree\tfour") == "one\\u000atwo\\u000d\\u000athree\\u0009four");
}

TEST_CASE("words of letters are told to a shell as they are, others in quotation marks") {
  CHECK(shell_quoted("runs/a-b_1.2:3") == "runs/a-b_1.2:3");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("my sweep") == "'my sweep'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("$(touch x)`y`;z") == "'$(touch x)`y`;z'");
  CHECK(shell_quoted("=ls") == "'=ls'");
  CHECK(shell_quoted("größe") == "'größe'");
  CHECK(shell_quoted("a\nb") == "$'a\\012b'");
  CHECK(shell_line({"manyworlds", "resume", "my sweep"}) == "manyworlds resume 'my sweep'");
  CHECK(as_operand("-rf") == "./-rf");
  CHECK(as_operand("runs/-rf") == "runs/-rf");
}

TEST_CASE("every byte, alone and among others, is read back by bash, and is told visibly on one line") {
  std::vector<std::string> words{kOverride + "!'\n\\", "a\n\n", " ", "-n", "~", "a=b", "#", "*", "{a,b}", "\xff!x"};
  for (int byte = 1; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    words.insert(words.end(), {one, "a" + one + "1", "'" + one, one + "\n!" + one});
  }
  const std::string line = shell_line(words);
  CHECK(line_text(line) == line);
  CHECK(words_by_bash(line) == words);
}

TEST_CASE("a field is quoted as RFC 4180 says, and what a spreadsheet would compute is told as text") {
  CHECK(csv_field("plain – text") == "plain – text");
  CHECK(csv_field("x,y") == "\"x,y\"");
  CHECK(csv_field("say \"no\"") == "\"say \"\"no\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  CHECK(csv_field("=HYPERLINK(\"x\",1)") == "\"'=HYPERLINK(\"\"x\"\",1)\"");
  for (const std::string formula : {"=1", "+1+cmd", "-1+1", "@SUM(1)", "-inf", "+1"})
    CHECK(csv_field(formula) == "'" + formula);
  for (const char* number : {"-1", "-0.5e-3", "12"}) CHECK(csv_field(number) == number);
  CHECK(csv_field("\r=1\x1b") == "\\u000d=1\\u001b");
}

TEST_CASE("a guarded text is read back as what it was") {
  for (const std::string text : {"=1", "'=1", "''=1", "-1", "'-1", "'", "", "it's", "'quoted'", "@x", "\t=1"})
    CHECK(csv_text(csv_field(text)) == text);
}

TEST_CASE("nothing is markup of HTML, and nothing is forbidden in XML") {
  CHECK(escape_html("<b a=\"1\">&\x1b") == "&lt;b a=&quot;1&quot;&gt;&amp;\\u001b");
  CHECK(escape_html("two\nlines") == "two\nlines");
}

TEST_CASE("nothing is markup of Markdown, in text or in a cell") {
  CHECK(escape_markdown("a|b") == "a\\|b");
  CHECK(escape_markdown("`code` *b* _i_ ~~s~~ # \\") == "\\`code\\` \\*b\\* \\_i\\_ \\~\\~s\\~\\~ \\# \\\\");
  CHECK(escape_markdown("<script>") == "&lt;script&gt;");
  CHECK(escape_markdown("&lt;") == "&amp;lt;");
  CHECK(escape_markdown("![x](javascript:1)") == "!\\[x\\](javascript:1)");
  CHECK(escape_markdown("https://evil.example www.evil.example") == "https\\://evil.example www\\.evil.example");
  CHECK(escape_markdown("one\ntwo\x1b") == "one two\\\\u001b");
  CHECK(escape_markdown("12.5 ms – 3") == "12.5 ms – 3");
}
