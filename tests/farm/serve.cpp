// What the server of the live page answers, byte for byte as a client sees it, and to whom.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "core/base/error.hpp"
#include "farm/serve/http_session.hpp"
#include "farm/serve/live_page.hpp"
#include "farm/serve/metrics.hpp"
#include "tests/farm/serve_client.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::serve;
using namespace manyworlds::farm::serve::testing;
using Catch::Contains;

namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

/// A sample of Prometheus' text format: name, labels as written, value.
struct Sample {
  std::string name, labels;
  double value = 0;
};

bool is_name(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) == 0) &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") ==
             std::string::npos;
}

/// Reads version 0.0.4 as its page describes it, and fails the test for anything else: each metric has one HELP, then
/// one TYPE, then its samples in one group; no sample twice; the last line ends.
std::vector<Sample> parse_metrics(const std::string& text) {
  REQUIRE(text.ends_with('\n'));
  std::vector<Sample> samples;
  std::set<std::string> helped, typed, seen, finished;
  std::string group;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::istringstream words(line);
    if (line.starts_with("# ")) {
      std::string hash, what, name, rest;
      words >> hash >> what >> name;
      std::getline(words, rest);
      REQUIRE(is_name(name));
      REQUIRE(rest.size() > 1);
      if (what == "HELP") {
        REQUIRE(helped.insert(name).second);
        finished.insert(group);
        group = name;
      } else {
        REQUIRE(what == "TYPE");
        REQUIRE((rest == " gauge" || rest == " counter"));
        REQUIRE(helped.contains(name));
        REQUIRE(typed.insert(name).second);
      }
      continue;
    }
    Sample sample;
    const auto brace = line.find('{'), blank = line.rfind(' ');
    REQUIRE(blank != std::string::npos);
    sample.name = line.substr(0, std::min(brace, blank));
    if (brace != std::string::npos) {
      REQUIRE(line[blank - 1] == '}');
      sample.labels = line.substr(brace + 1, blank - brace - 2);
      const auto equals = sample.labels.find("=\"");
      REQUIRE(is_name(sample.labels.substr(0, equals)));
      std::string value = sample.labels.substr(equals + 2);
      REQUIRE(value.ends_with('"'));
      value.pop_back();
      for (std::size_t i = 0; i < value.size(); ++i) {
        REQUIRE(value[i] != '"');
        if (value[i] == '\\') {
          REQUIRE(i + 1 < value.size());
          REQUIRE(std::string("\\\"n").find(value[++i]) != std::string::npos);
        }
      }
    }
    std::size_t used = 0;
    sample.value = std::stod(line.substr(blank + 1), &used);
    REQUIRE(used == line.size() - blank - 1);
    REQUIRE(sample.name == group);
    REQUIRE(typed.contains(group));
    REQUIRE_FALSE(finished.contains(group));
    REQUIRE(seen.insert(sample.name + "{" + sample.labels).second);
    samples.push_back(sample);
  }
  return samples;
}

double value_of(const std::vector<Sample>& samples, const std::string& name, const std::string& labels = "") {
  for (const Sample& sample : samples)
    if (sample.name == name && sample.labels == labels) return sample.value;
  FAIL("no sample " << name << "{" << labels << "}");
  return 0;
}

}  // namespace

TEST_CASE("each path answers with its type, and nothing that a browser may keep or load from elsewhere") {
  const Run run;
  const Served served(run);
  const std::map<std::string, std::string> types{{"/", "text/html; charset=utf-8"},
                                                 {"/status.json", "application/json; charset=utf-8"},
                                                 {"/metrics", "text/plain; version=0.0.4; charset=utf-8"},
                                                 {"/results.h5", "application/x-hdf5"},
                                                 {"/healthz", "text/plain; charset=utf-8"}};
  for (const auto& [path, type] : types) {
    CAPTURE(path);
    Reply got = served.ask(path);
    CHECK(got.status == 200);
    CHECK(got.fields["Content-Type"] == type);
    CHECK(got.fields["Cache-Control"] == "no-store");
    CHECK(got.fields["X-Content-Type-Options"] == "nosniff");
    CHECK_THAT(got.fields["Content-Security-Policy"], Contains("default-src 'none'") && !Contains("unsafe"));
    const Reply head = served.ask(path, "", "HEAD");
    CHECK(head.status == 200);
    if (path != "/metrics") CHECK(head.fields.at("Content-Length") == got.fields["Content-Length"]);
  }
  CHECK(served.ask("/").body == "<p>a page</p>");
  CHECK(served.ask("/?from=somewhere").body == "<p>a page</p>");
  CHECK(served.ask("/results.h5").body == run.results);
  CHECK(nlohmann::json::parse(served.ask("/status.json").body) == run.told());
  for (const char* path : {"/nothing", "//", "/status.json/", "/../status.json", "/%73tatus.json", "/journal"})
    CHECK(served.ask(path).status == 404);
}

TEST_CASE("nothing but GET and HEAD is taken") {
  const Run run;
  const Served served(run);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"}) {
    CAPTURE(method);
    Reply got = served.ask("/status.json", "", method);
    CHECK(got.status == 405);
    CHECK(got.fields["Allow"] == "GET, HEAD");
  }
}

TEST_CASE("a run that has not begun to speak, and results that are not there yet, are told as such") {
  Run run;
  std::filesystem::remove(run.folder / "status.json");
  std::filesystem::remove(run.folder / "results.h5");
  const Served served(run);
  CHECK(nlohmann::json::parse(served.ask("/status.json").body).at("state") == "starting");
  CHECK(value_of(parse_metrics(served.ask("/metrics").body), "manyworlds_state", "state=\"starting\"") == 1);
  CHECK(served.ask("/results.h5").status == 404);
  REQUIRE(::mkfifo((run.folder / "results.h5").c_str(), 0600) == 0);
  CHECK(served.ask("/results.h5").status == 503);
  CHECK(served.ask("/healthz").status == 200);
  run.say({{"no", "status"}});
  const auto status = served.status_when([](const nlohmann::json& told) { return told.contains("reason"); });
  CHECK(status.at("state") == "starting");
  CHECK(status.contains("reason"));
}

TEST_CASE("a run that nobody runs any more is told as interrupted, and one that ended by an error with its reason") {
  Run run;
  run.say(sample_status("running"));
  const Served served(run);
  const auto is = [](const char* state) {
    return [state](const nlohmann::json& told) { return told.at("state") == state; };
  };
  CHECK(served.status_when(is("interrupted")).at("state") == "interrupted");
  {
    run.folder.put("lock", "{}");
    io::File lock(run.folder / "lock", O_RDWR);
    REQUIRE(lock.try_lock());
    CHECK(served.status_when(is("running")).at("state") == "running");
  }
  run.folder.put("complete.json", R"({"format": 1, "state": "failed", "exit": 74, "reason": "the disk is full"})");
  const auto status = served.status_when(is("failed"));
  CHECK(status.at("state") == "failed");
  CHECK(status.at("reason") == "the disk is full");
}

TEST_CASE("metrics are what Prometheus reads, and say what the status says") {
  const Run run;
  const Served served(run);
  const auto samples = parse_metrics(served.ask("/metrics").body);
  CHECK(samples.size() > 30);
  for (const Sample& sample : samples) CHECK_THAT(sample.name, Catch::StartsWith("manyworlds_"));
  CHECK(value_of(samples, "manyworlds_state", "state=\"complete\"") == 1);
  CHECK(value_of(samples, "manyworlds_state", "state=\"running\"") == 0);
  CHECK(value_of(samples, "manyworlds_tasks", "kind=\"steps\"") == 5);
  CHECK(value_of(samples, "manyworlds_tasks_done", "kind=\"steps\"") == 4);
  CHECK(value_of(samples, "manyworlds_tasks_failed", "kind=\"steps\"") == 1);
  CHECK(value_of(samples, "manyworlds_tasks_per_second") == 1.5);
  CHECK(value_of(samples, "manyworlds_sharing_ratio") == 12.25);
  CHECK(value_of(samples, "manyworlds_rank_busy_ratio", "rank=\"1\"") == 0.25);
  CHECK(value_of(samples, "manyworlds_rank_alive", "rank=\"1\"") == 0);
  for (const Sample& sample : samples) CHECK(sample.name != "manyworlds_time_left_seconds");  // not known
}

TEST_CASE("labels that hold quotes, backslashes and line ends stay one sample") {
  auto status = sample_status();
  status["kinds"][0]["name"] = "a\"b\\c\nd";
  const auto samples = parse_metrics(run_metrics(status));
  CHECK(value_of(samples, "manyworlds_tasks", "kind=\"a\\\"b\\\\c\\nd\"") == 3);
}

TEST_CASE("without the token nothing is served, and with it everything, however it is brought") {
  const Run run;
  const Served served(run, Served::patient(), kToken);
  const std::string right = kToken, wrong = "1" + right.substr(1), cookie = fmt::format("manyworlds_{}", served.port());
  for (const char* path : {"/", "/status.json", "/events", "/metrics", "/results.h5", "/healthz", "/nothing"})
    for (const std::string& fields :
         {std::string(), "Authorization: Bearer " + wrong + "\r\n", "Authorization: Basic " + right + "\r\n",
          "Authorization: Bearer " + right + "0\r\n", "Cookie: " + cookie + "=" + wrong + "\r\n",
          "Cookie: other=" + right + "\r\n"}) {
      CAPTURE(path, fields);
      const Reply got = served.ask(path, fields);
      CHECK(got.status == 401);
      CHECK(got.fields.at("WWW-Authenticate") == "Bearer");
      CHECK_THAT(got.body, !Contains(right));
      CHECK_FALSE(got.fields.contains("Set-Cookie"));
    }
  CHECK(served.ask("/?token=" + wrong).status == 401);
  CHECK(served.ask("/?token=").status == 401);
  CHECK(served.ask("/status.json", "Authorization: Bearer " + right + "\r\n").status == 200);
  CHECK(served.ask("/status.json", "Cookie: a=b; " + cookie + "=" + right + "\r\n").status == 200);
  // Whoever has the token may come by any name.
  Client client = served.client();
  client.send("GET /?x=1&token=" + right + " HTTP/1.1\r\nHost: cluster.example\r\n\r\n");
  Reply got = reply(client);
  CHECK(got.status == 200);
  CHECK(got.fields["Set-Cookie"] == cookie + "=" + right + "; Path=/; HttpOnly; SameSite=Strict");
  CHECK_FALSE(served.ask("/", "Cookie: " + cookie + "=" + right + "\r\n").fields.contains("Set-Cookie"));
}

TEST_CASE("a loopback address answers to names of this machine alone, so that no page from elsewhere can ask it") {
  for (const char* host : {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8080", "127.8.8.8", "[::1]", "[::1]:1"})
    CHECK(names_loopback(host));
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.", "127.1",
        "127.0.0.1:", "127.0.0.1:80x", "0.0.0.0", "[::2]", "::1", "localhost:808080", "127..0.1", "[::1]x"})
    CHECK_FALSE(names_loopback(host));
  const Run run;
  const Served served(run);
  Client client = served.client();
  client.send("GET /status.json HTTP/1.1\r\nHost: rebound.example\r\n\r\n");
  const Reply got = reply(client);
  CHECK(got.status == 421);
  CHECK_THAT(got.body, !Contains("state"));
}

TEST_CASE("the token of a run is left for its owner alone, stays the same, and is another for another run") {
  const Run run, other;
  const std::string token = token_of(run.folder.path);
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token_of(run.folder.path) == token);
  CHECK(token_of(other.folder.path) != token);
  struct stat status {};
  REQUIRE(::stat(token_file(run.folder.path).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  ::chmod(token_file(run.folder.path).c_str(), 0640);
  CHECK_THROWS_AS(token_of(run.folder.path), core::InputError);
  ::chmod(token_file(run.folder.path).c_str(), 0600);
  std::ofstream(token_file(run.folder.path)) << "guessable\n";
  CHECK_THROWS_AS(token_of(run.folder.path), core::InputError);
  // What somebody else put there, he knows.
  std::ofstream(token_file(run.folder.path)) << token << "\n";
  CHECK(token_of(run.folder.path) == token);
  if (::chown(token_file(run.folder.path).c_str(), 12345, 12345) == 0)
    CHECK_THROWS_WITH(token_of(run.folder.path), Catch::Contains("not a regular file of this user"));
  std::filesystem::rename(token_file(run.folder.path), run.folder.path / "known");
  std::filesystem::create_symlink("known", token_file(run.folder.path));
  CHECK_THROWS_WITH(token_of(run.folder.path), Catch::Contains("not a regular file of this user"));
  CHECK(same_secret("", ""));
  CHECK(same_secret(token, std::string(token)));
  CHECK_FALSE(same_secret(token, token.substr(1)));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string off = token;
    off[i] ^= 1;
    CHECK_FALSE(same_secret(token, off));
  }
}

TEST_CASE("addresses are read as people write them, and a port that cannot be had is said with why") {
  CHECK(parse_address("8080", "--serve").host == "127.0.0.1");
  CHECK(parse_address("8080", "--serve").port == 8080);
  CHECK(parse_address("0.0.0.0:0", "--serve").host == "0.0.0.0");
  CHECK(parse_address("[::1]:65535", "--serve").host == "::1");
  CHECK(parse_address("login1:80", "--serve").host == "login1");
  for (const char* text : {"", "x", ":80", "80:", "65536", "-1", "1 ", "::1:80", "[]:80", "0x50", "host:port"})
    CHECK_THROWS_AS(parse_address(text, "--serve"), core::InputError);
  const Listener taken = Listener::at({}, "--serve");
  CHECK(taken.loopback());
  CHECK(taken.url() == fmt::format("http://127.0.0.1:{}/", taken.port()));
  CHECK_THROWS_WITH(Listener::at({"127.0.0.1", taken.port()}, "--serve"),
                    Contains("--serve") && Contains(std::to_string(taken.port())) && Contains("already in use"));
  CHECK_THROWS_WITH(Listener::at({"no.such.host.invalid", 0}, "--serve"), Contains("no.such.host.invalid"));
  const Listener open = Listener::at({"0.0.0.0", 0}, "--serve");
  CHECK_FALSE(open.loopback());
  CHECK(open.url() == fmt::format("http://{}:{}/", io::host_name(), open.port()));
  CHECK_THROWS_AS(Listener::inherited(STDIN_FILENO), core::InputError);
  if (std::ifstream("/proc/net/if_inet6").peek() == std::ifstream::traits_type::eof()) return;  // no IPv6 here
  const Listener six = Listener::at({"::1", 0}, "--serve");
  CHECK(six.loopback());
  CHECK(six.url() == fmt::format("http://[::1]:{}/", six.port()));
}

TEST_CASE("the live page names no address outside of where it came from") {
  for (const auto& [path, page] : live_page()) {
    CAPTURE(path);
    if (path == "/chart.js" || path == "/chart-licence.txt") continue;  // they name their authors' pages in comments
    CHECK(page.text->find("://") == std::string::npos);
    CHECK(page.text->find("innerHTML") == std::string::npos);
  }
}
