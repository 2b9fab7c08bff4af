// Launch scripts are followed as bash would run them; what bash would take from elsewhere is unknown, with its reason.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "core/base/error.hpp"
#include "experiments/shell/interpreter.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::shell;

namespace {

FollowedScript followed(const std::string& text, const std::map<std::string, std::string>& given = {},
                        const std::map<std::string, std::string>& siblings = {}) {
  ScriptInput input{text, "train.sh", given, {}, {}, {}};
  input.sibling = [&](const std::string& name) {
    const auto found = siblings.find(name);
    return found == siblings.end() ? std::nullopt : std::optional(found->second);
  };
  input.is_launch = [](const std::vector<Text>& words) {
    return std::any_of(words.begin(), words.end(), [](const Text& one) { return one.text == "run"; });
  };
  return follow(input);
}

/// Returns the words behind `run` in the only command of that name, with '|' between them.
std::string ran(const std::string& text, const std::map<std::string, std::string>& given = {},
                const std::map<std::string, std::string>& siblings = {}) {
  const FollowedScript script = followed(text, given, siblings);
  if (script.launches.size() != 1) return std::to_string(script.launches.size()) + " commands";
  const std::vector<Text>& all = script.launches[0].words;
  const auto program = std::find_if(all.begin(), all.end(), [](const Text& one) { return one.text == "run"; });
  std::string words;
  for (auto word = program + 1; word != all.end(); ++word) words += (word > program + 1 ? "|" : "") + shown(word->text);
  return words;
}

std::string refusal(const std::string& text) {
  try {
    followed(text);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

/// What bash itself prints for the words of `run`.
std::string by_bash(const std::string& text) {
  const std::string script = "run() { local IFS='|'; printf '%s' \"$*\"; }\n" + text;
  std::string quoted;
  for (const char c : script) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  FILE* pipe = popen(("env -i bash --norc -c '" + quoted + "'").c_str(), "r");
  std::string printed;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) printed.push_back(static_cast<char>(c));
  pclose(pipe);
  return printed;
}

const char* const kScripts[] = {
    "TP=8\nrun --tp $TP --pp ${PP:-4} \"a b\" 'c d' e\\ f",
    "A=(--x 1 # one\n --y \"2 3\")\nA+=(--z)\nrun ${A[@]} end\n",
    "A=(--x 1 --y \"2 3\")\nB=(\"${A[@]}\" --w)\nrun \"${B[@]}\" ${#B[@]} ${B[3]} ${B[-1]}",
    "N=4; G=8\nrun $((N*G)) $(( $N * ($G + 1) % 5 )) $((N > 3 ? 1 : 2)) $((2**10)) $((-7/2)) $((1 << 4))",
    "if [ \"$X\" = 1 ]; then A=one; elif [[ -z $X ]]; then A=two; else A=three; fi\nrun $A",
    "X=fp8\nif [[ $X == fp* && ! $X == bf* ]]; then run yes; else run no; fi",
    "case h100 in a*) A=1;; h?00|b200) A=2;; *) A=3;; esac\nrun $A",
    "for i in 1 2 3; do L=\"$L,$i\"; done\nrun ${L#,} ${L%%,*}x ${L##*,}",
    "i=0\nwhile [ $i -lt 3 ]; do i=$((i+1)); [ $i -eq 2 ] && break; done\nrun $i",
    "f() { local a=$1; B=\"$a-$2\"; }\nf x y\nrun $B",
    "F=path/to/file.tar.gz\nrun ${F##*/} ${F%.*} ${F%%.*} ${F/to/from} ${F^^} ${F:0:4} ${#F}",
    "ARGS=\" \\\n  --a 1 \\\n  --b 2\"\nrun $ARGS \\\n  --c # comment\n",
    "eval \"run --a 1 ; X=2\"",
    "X=1; Y=X\nrun ${!Y} ${X:+set} ${Z:+set} ${X-no} ${Z-no} $'q'",
    ": \"${D:=7}\"\nrun $D",
    "read_me=1\n[[ $read_me -eq 1 || $other -eq 2 ]] && run ok",
    "A=(); run ${A[@]} \"${A[@]}\" x \"\"",
    "set -- p q r; shift; run $# $1 \"$@\"",
    "X='a  b'; run $X \"$X\" pre${X}post",
    "(X=2; Y=3); run \"${X:-unset}\"",
    "X=5; { X=6; }; run $X; exit 0; run never",
    "run \"a\\\"b\" 'it'\\''s' \"\\$x\" a\\$b",
    "if ! [ 1 -eq 2 ]; then run negated; fi",
    "X=$(echo a b); run $X \"$(basename /x/y.sh)\" `echo z`",
    "until [ \"$n\" = aaa ]; do n=a$n; done; run $n",
    "read_x() { return 0; echo no; }; read_x; run after",
};

}  // namespace

TEST_CASE("words that bash itself would pass are passed") {
  for (const std::string script : kScripts) {
    INFO(script);
    const std::string expected = by_bash(script);
    REQUIRE_FALSE(expected.empty());
    CHECK(ran(script) == expected);
  }
}

TEST_CASE("a variable of the environment decides if it is given, and its default is told if not") {
  const std::string script = "run ${TP:-1}";
  CHECK(ran(script, {{"TP", "4"}}) == "4");
  CHECK(followed(script).assumed.at("TP") == "1");
  CHECK(refusal("run 1") == "(no error)");
  try {
    followed("run 1", {{"TP", "4"}});
    FAIL("a variable that is not read was taken");
  } catch (const core::InputError& error) {
    CHECK(std::string(error.what()) == "train.sh: the script does not read 'TP' from the environment");
  }
}

TEST_CASE("what a command prints or a file decides is unknown, with its reason") {
  CHECK(ran("run $(nvidia-smi -L) x") == "?|x");
  CHECK(ran("if [ -f there ]; then A=1; else A=2; fi\nrun $A") == "?");
  const auto script = followed("if [ -f there ]; then A=1; else A=2; fi\nrun $A");
  CHECK(why_unknown(script.launches[0].words[1].text) == "line 1, a condition (-f there)");
  CHECK(ran("if [ -f there ]; then A=1; else A=1; fi\nrun $A") == "1");
  CHECK(ran("if [ ! -f there ]; then echo missing; exit 1; fi\nA=1\nrun $A") == "1");
  CHECK(ran("A=1\ncheck || A=2\nrun $A") == "?");
  CHECK(ran("A=1\ncheck || { echo bad; exit 1; }\nrun $A") == "1");
  CHECK(ran("A=1\nwhile read line; do A=2; done\nrun $A") == "?");
  CHECK(ran("run $SLURM_NNODES ${SLURM_NNODES:-4} ${SLURM_PROCID:-4}") == "?|4|?");
}

TEST_CASE("a file beside the script is read, and one that is not there leaves nothing certain") {
  const std::string script = "A=1\nsource $(dirname $0)/config.sh\nB=2\nrun $A $B";
  CHECK(ran(script, {}, {{"config.sh", "A=3\n"}}) == "3|2");
  CHECK(ran(script) == "?|2");
  CHECK(followed(script).handovers.at(0).name == "config.sh");
  CHECK(ran("A=1\nsource venv/bin/activate\nrun $A") == "1");
}

TEST_CASE("scripts within scripts are followed") {
  CHECK(ran("A=1\nsrun bash -c \"run $A\" 2>&1 | tee log") == "1");
  const auto script = followed("A='x y'\nsbatch <<EOF\n#!/bin/bash\nrun $A \\$B\nEOF\n");
  REQUIRE(script.texts.size() == 1);
  CHECK(script.texts[0].text == "#!/bin/bash\nrun x y $B\n");
}

TEST_CASE("what bash refuses, and what never ends, is refused with its line") {
  CHECK(refusal("run a\nif true; then\n") == "train.sh:3: 'fi' of 'if' is missing");
  CHECK(refusal("A=(1 2\n") == "train.sh:1: the array 'A' that begins here never ends");
  CHECK(refusal("\nrun \"a") == "train.sh:2: the double quote that begins here never ends");
  CHECK(refusal("f() { f; }\nf") == "train.sh:1: functions call one another too deep");
  CHECK(refusal("A=x\nwhile true; do A=$A$A; done").find("more than a launch script should need") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "( ";
  CHECK(refusal(deep).find("nest") != std::string::npos);
}

TEST_CASE("a damaged script is followed or refused") {
  std::mt19937_64 random(25);
  std::string all;
  for (const char* script : kScripts) all += std::string(script) + "\n";
  for (int i = 0; i < 3'000; ++i) {
    const std::string text = i % 2 == 0 ? all : kScripts[static_cast<std::size_t>(i) % std::size(kScripts)];
    try {
      followed(testing::mutated(text, random));
    } catch (const core::InputError&) {
    }
  }
}
