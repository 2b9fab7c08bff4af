// The server of the live page among clients that are slow, many, broken or gone: each gets what it is due or is
// dropped, and the others never notice.
#include <catch2/catch.hpp>
#include <vector>

#include "farm/serve/http_session.hpp"
#include "tests/farm/serve_client.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::serve;
using namespace manyworlds::farm::serve::testing;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

const std::string kAsk = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kWatch = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The state in the next event of a stream.
nlohmann::json next_event(Client& client) {
  const std::string text = client.read_to("\n\n");
  const auto data = text.find("data: ");
  return data == std::string::npos ? nlohmann::json() : nlohmann::json::parse(text.substr(data + 6));
}

}  // namespace

TEST_CASE("requests sent at once are answered in their order, and the connection ends where one asks for that") {
  const Run run;
  const Served served(run);
  Client client = served.client();
  client.send(
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n\r\nHEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(reply(client).body == "ok\n");
  CHECK(reply(client, false).status == 200);
  CHECK(reply(client).status == 404);
  CHECK(client.ended());
  Client old = served.client();
  old.send("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n");
  CHECK(reply(old).body == "ok\n");
  CHECK(old.ended());
}

TEST_CASE("a request may come byte by byte, and a thousand in one go") {
  const Run run;
  const Served served(run);
  Client slow = served.client();
  for (const char c : kAsk) slow.send({&c, 1});
  CHECK(reply(slow).body == "ok\n");
  Client busy = served.client();
  std::string all;
  for (int i = 0; i < 1'000; ++i) all += kAsk;
  std::thread sending([&] { busy.send(all); });
  int answered = 0;
  for (int i = 0; i < 1'000; ++i) answered += reply(busy).status == 200;
  sending.join();
  CHECK(answered == 1'000);
}

TEST_CASE("what is no request, or too large to be one, is refused in words, and that connection ends") {
  const Run run;
  const Served served(run);
  const std::map<std::string, int> refused{
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
      {"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {std::string("\0\x16\x03\x01", 4) + std::string(60, '\x01') + "\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9'000, 'x'), 431},
      {"GET /" + std::string(9'000, 'x'), 431},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 413},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 413},
  };
  for (const auto& [bytes, status] : refused) {
    CAPTURE(bytes.substr(0, 100));
    Client client = served.client();
    client.send(bytes);
    CHECK(reply(client).status == status);
    CHECK(client.ended());
  }
  // Also where much more follows than is read.
  Client client = served.client();
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  CHECK(reply(client).status == 413);
}

TEST_CASE("who does not finish a request is told that it took too long, who begins none is let go in silence") {
  ServerLimits limits = Served::patient();
  limits.request = milliseconds(2'000);
  limits.keep_alive = milliseconds(1'000);
  const Run run;
  const Served served(run, limits);
  const auto begin = Clock::now();
  Client silent = served.client(), dripping = served.client(), idle = served.client();
  idle.send(kAsk);
  CHECK(reply(idle).status == 200);
  CHECK(idle.ended());
  std::size_t sent = 0;
  const std::string endless = "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(8'000, 'x');
  while (sent < endless.size() && dripping.send({&endless[sent], 1}) && Clock::now() - begin < milliseconds(4'000)) {
    ++sent;
    std::this_thread::sleep_for(milliseconds(20));
  }
  CHECK(sent < 200);  // of one in 20 ms
  CHECK(reply(dripping).status == 408);
  CHECK(silent.ended());
  CHECK(served.metric("manyworlds_serve_dropped_total") == 2);
}

TEST_CASE("who never reads its answer is dropped, and everybody else is served meanwhile") {
  ServerLimits limits = Served::patient();
  limits.stall = milliseconds(2'000);
  Run run;
  run.results = std::string(30'000'000, 'r');
  run.folder.put("results.h5", run.results);
  const Served served(run, limits);
  std::vector<Client> never;
  for (int i = 0; i < 20; ++i) {
    never.push_back(served.client(4'096));
    never.back().send("GET /results.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  CHECK(served.ask("/healthz").status == 200);
  const auto begin = Clock::now();
  while (served.metric("manyworlds_serve_connections") > 1 && Clock::now() - begin < std::chrono::minutes(10))
    std::this_thread::sleep_for(milliseconds(50));
  CHECK(served.metric("manyworlds_serve_connections") == 1);
  CHECK(served.metric("manyworlds_serve_dropped_total") == 20);
  CHECK(served.ask("/results.h5").body.size() == run.results.size());
}

TEST_CASE("who reads an answer drop by drop is dropped when the time for all of it is over") {
  ServerLimits limits = Served::patient();
  limits.response = milliseconds(300);
  limits.bytes_per_s = 100'000'000;
  Run run;
  run.folder.put("results.h5", std::string(30'000'000, 'r'));
  const Served served(run, limits);
  Client client = served.client(4'096);
  client.send("GET /results.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto begin = Clock::now();
  std::size_t got = 0;
  for (std::string some = client.read(1'000); !some.empty(); some = client.read(1'000)) {
    got += some.size();
    std::this_thread::sleep_for(milliseconds(5));
    if (Clock::now() - begin > std::chrono::minutes(10)) break;
  }
  CHECK(got < 30'000'000);
  CHECK(served.metric("manyworlds_serve_dropped_total") == 1);
}

TEST_CASE("a file that is replaced while it is sent goes out whole, as it was") {
  Run run;
  run.results = std::string(20'000'000, 'a');
  run.folder.put("results.h5", run.results);
  const Served served(run);
  Client client = served.client(4'096);
  client.send("GET /results.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string head = client.read_to("\r\n\r\n");
  CHECK_THAT(head, Catch::Contains("Content-Length: 20000000\r\n"));
  io::write_atomically(run.folder / "results.h5", std::string(10'000'000, 'b'));
  CHECK(client.read(20'000'000) == run.results);
  CHECK(served.ask("/results.h5").body == std::string(10'000'000, 'b'));
}

TEST_CASE("who watches gets the state at once, then each that is new, and the last one when the server ends") {
  Run run;
  Served served(run);
  Client client = served.client();
  client.send(kWatch);
  const Reply head = reply(client);
  CHECK(head.fields.at("Content-Type") == "text/event-stream; charset=utf-8");
  CHECK(client.read_to("\n\n") == "retry: 2000\n\n");
  CHECK(next_event(client) == run.told());
  auto status = sample_status();
  for (int done = 8; done < 11; ++done) {
    status["done"] = done;
    run.say(status);
    CHECK(next_event(client).at("done") == done);
  }
  status["done"] = 99;
  run.say(status);
  served.finish();
  CHECK(next_event(client).at("done") == 99);
  CHECK(client.ended());
  served.join();
}

TEST_CASE("a watcher that falls behind skips states and is not queued for, and the one it ends at is the newest") {
  Run run;
  auto status = sample_status();
  status["padding"] = std::string(2'000'000, 'p');  // far more than sockets hold
  run.say(status);
  const Served served(run);
  Client slow = served.client(4'096), quick = served.client();
  for (Client* client : {&slow, &quick}) {
    client->send(kWatch);
    reply(*client);
    CHECK(client->read_to("\n\n") == "retry: 2000\n\n");
  }
  CHECK(next_event(quick).at("done") == 7);
  for (int done = 8; done < 28; ++done) {
    status["done"] = done;
    run.say(status);
    CHECK(next_event(quick).at("done") == done);
  }
  int events = 0, done = 0;
  for (; done < 27; ++events) done = next_event(slow).at("done");
  CHECK(done == 27);
  CHECK(events <= 3);  // the one it began, perhaps one more, and the newest
}

TEST_CASE("a stream in which nothing happens still beats, and a watcher that speaks is let go") {
  ServerLimits limits = Served::patient();
  limits.heartbeat = milliseconds(50);
  const Run run;
  const Served served(run, limits);
  Client client = served.client();
  client.send(kWatch);
  reply(client);
  client.read_to("\n\n");
  next_event(client);
  CHECK(client.read_to("\n\n") == ":\n\n");
  CHECK(client.read_to("\n\n") == ":\n\n");
  client.send(kAsk);
  client.read_all();
  CHECK(served.metric("manyworlds_serve_connections") == 1);
}

TEST_CASE(
    "300 watch at once and see every change, one too many is turned away in words, and room that is left is used") {
  ServerLimits limits = Served::patient();
  limits.connections = 300;
  Run run;
  const Served served(run, limits);
  std::vector<Client> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(served.client());
    all.back().send(kWatch);
  }
  for (Client& client : all) {
    reply(client);
    client.read_to("\n\n");
    CHECK(next_event(client).at("done") == 7);
  }
  Client late = served.client();
  CHECK(reply(late).status == 503);
  CHECK(late.ended());
  auto status = sample_status();
  status["done"] = 8;
  run.say(status);
  for (Client& client : all) CHECK(next_event(client).at("done") == 8);
  all.clear();
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(served.ask("/healthz").status == 200);
}

TEST_CASE("a server that ends waits for nobody longer than its farewell") {
  ServerLimits limits = Served::patient();
  limits.shutdown_grace = milliseconds(300);
  Run run;
  run.folder.put("results.h5", std::string(30'000'000, 'r'));
  Served served(run, limits);
  Client never = served.client(4'096), idle = served.client();
  never.send("GET /results.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(served.ask("/healthz").status == 200);
  const auto begin = Clock::now();
  served.finish();
  served.join();
  CHECK(Clock::now() - begin < std::chrono::minutes(1));  // of ten that a client may take
  CHECK(idle.ended());
}

TEST_CASE("however a conversation's bytes are split, the answers are the same") {
  const Run run;
  HttpHandler handler(Access("", 80), Served::pages());
  const auto text = std::make_shared<const std::string>("{}");
  handler.publish({text, text, run.folder / "results.h5"});
  const std::string bytes =
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n\r\nHEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /results.h5 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
      "POST /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\nGET / HTTP/1.1\r\n\r\n";
  const auto answers = [&](std::size_t portion) {
    HttpSession session(handler);
    std::vector<int> statuses;
    for (std::size_t at = 0; at < bytes.size() && !session.finished();) {
      const std::size_t some = std::min({portion, bytes.size() - at, session.free_bytes()});
      REQUIRE(some > 0);
      session.receive(std::string_view(bytes).substr(at, some));
      at += some;
      while (const auto response = session.next()) statuses.push_back(response->status);
    }
    return statuses;
  };
  const std::vector<int> expected{200, 404, 200, 421};
  for (std::size_t portion = 1; portion <= bytes.size(); ++portion) CHECK(answers(portion) == expected);
}
