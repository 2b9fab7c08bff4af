// Algorithms of MSCCL: those that are right take what their closed forms say, and wrong ones are refused at their step.
#include "experiments/msccl/algorithm.hpp"
#include "experiments/msccl/read_algorithm.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/msccl_algorithms.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using Catch::Matchers::Contains;
using experiments::testing::all_pairs;
using experiments::testing::ring;
using experiments::testing::XmlAlgorithm;
using experiments::testing::XmlBlock;

namespace {

Time takes(const XmlAlgorithm& algorithm, std::int64_t bytes,
           network::Fidelity fidelity = network::Fidelity::analytic) {
  return step_of(msccl::import_algorithm(algorithm.text(), "a.xml", {bytes}).programs, fidelity).step_ps;
}

/// Reading two, adding them and writing one at the memory bandwidth.
Time reduction_ps(std::int64_t bytes) {
  const compute::Gpu on = gpu();
  return std::llround(3 * static_cast<double>(bytes) / (on.memory_gb_per_s * on.memory_efficiency) * 1e3);
}

std::string groups_of(std::uint32_t ranks) {
  std::vector<std::uint32_t> all(ranks);
  for (std::uint32_t i = 0; i < ranks; ++i) all[i] = i;
  return fmt::format("[{}]", fmt::join(all, ","));
}

std::string error(const std::string& text, std::int64_t bytes = 1 << 20) {
  return error_of([&] { msccl::import_algorithm(text, "a.xml", {bytes}); });
}
std::string error(const XmlAlgorithm& algorithm) {
  return error(algorithm.text(), algorithm.chunks * 4'096);
}

/// A text with the first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// An all-gather of two GPUs in place: GPU 0 sends the first three of its four chunks over channel 0, then the last one
/// over channel 1, which GPU 1 wants first.
XmlAlgorithm out_of_order(const std::string& protocol) {
  XmlAlgorithm result{"allgather", protocol, 8, true, {}, 0};
  XmlBlock first{1, 1, 0, {{"s", "o0", "o0"}, {"s", "o1", "o1"}, {"s", "o2", "o2"}, {"r", "o4", "o4", 4}}};
  first.steps[2].is_waited_for = true;
  result.gpus.push_back({first, {1, -1, 1, {{"s", "o3", "o3", 1, 0, 2}}}});
  XmlBlock last{-1, 0, 1, {{"r", "o3", "o3"}}};
  last.steps[0].is_waited_for = true;
  result.gpus.push_back(
      {{0, 0, 0, {{"s", "o4", "o4", 4}, {"r", "o0", "o0", 1, 1, 0}, {"r", "o1", "o1"}, {"r", "o2", "o2"}}}, last});
  return result;
}

}  // namespace

TEST_CASE("copies of a chunk to itself, as TE-CCL writes them in place, change nothing, and others are refused") {
  const std::string text = with(out_of_order("LL").text(), "inplace=\"1\"", "inplace=\"1\" outofplace=\"0\"");
  const auto with_copy = [&](const std::string& copy) { return with(text, "<tb", copy + "\n<tb"); };
  const std::string copied = with_copy("<copy i_off=\"0\" o_off=\"0\"/>");
  CHECK(step_of(msccl::import_algorithm(copied, "a.xml", {1 << 20}).programs).step_ps ==
        step_of(msccl::import_algorithm(text, "a.xml", {1 << 20}).programs).step_ps);
  CHECK_THAT(error(with_copy("<copy i_off=\"0\" o_off=\"1\"/>")), Contains("copies chunk 0 of the input to chunk 1"));
  CHECK_THAT(error(with_copy("<copy i_off=\"0\"/>")), Contains("<copy> lacks 'o_off'"));
  CHECK_THAT(error(with_copy("<copy i_off=\"0\" o_off=\"0\"><step/></copy>")), Contains("<step> stands in a <copy>"));
  CHECK_THAT(error(with(copied, "outofplace=\"0\"", "outofplace=\"1\"")),
             Contains("<copy> is of an algorithm in place"));
}

TEST_CASE("an algorithm of MSCCL is read as it stands") {
  const msccl::Algorithm algorithm = msccl::parse_algorithm(
      with("<?xml version=\"1.0\"?>\n<!-- one -->\n" + all_pairs(3).text(), "inplace=\"1\"",
           "inplace=\"1\" outofplace=\"0\" minBytes=\"1024\" maxBytes=\"65536\" nthreadblocks=\"3\""),
      "a.xml");
  CHECK(algorithm.protocol == msccl::Protocol::ll);
  CHECK(algorithm.kind == collective::Kind::all_reduce);
  CHECK(algorithm.chunks == 3);
  CHECK(algorithm.in_place);
  CHECK_FALSE(algorithm.out_of_place);
  CHECK(algorithm.min_bytes == 1'024);
  CHECK(algorithm.max_bytes == 65'536);
  REQUIRE(algorithm.gpus.size() == 3);
  REQUIRE(algorithm.gpus[1].blocks.size() == 3);
  const msccl::ThreadBlock& block = algorithm.gpus[1].blocks[1];
  CHECK(block.send == 2);
  CHECK(block.receive == 2);
  REQUIRE(block.steps.size() == 4);
  CHECK(block.steps[0].kind == msccl::StepKind::send);
  CHECK(block.steps[0].source.buffer == msccl::Buffer::input);
  CHECK(block.steps[0].source.offset == 2);
  CHECK(block.steps[1].is_waited_for);
  CHECK(block.steps[2].wait_block == 2);
  CHECK(block.steps[2].wait_step == 1);
  CHECK(algorithm.gpus[1].blocks[2].steps[0].kind == msccl::StepKind::reduce);
  CHECK(msccl::is_algorithm_file("<?xml version='1.0'?> <!-- x --> <algo name=\"\">"));
  CHECK_FALSE(msccl::is_algorithm_file("<system version=\"1\">"));
  CHECK_FALSE(msccl::is_algorithm_file("<algorithms>"));
}

TEST_CASE("a ring takes 2 (n - 1) transfers, as our own, and the reductions that ours leaves out") {
  for (const int gpus : {2, 3, 4, 8}) {
    const std::int64_t chunk = 512 << 10, bytes = gpus * chunk;
    const auto n = static_cast<std::uint32_t>(gpus);
    CAPTURE(gpus);
    CHECK(takes(ring(gpus), bytes) == 2 * (n - 1) * transfer_alone(chunk) + (n - 1) * reduction_ps(chunk));
    CHECK(takes(ring(gpus), bytes) == alone("all_reduce", bytes, groups_of(n), n) + (n - 1) * reduction_ps(chunk));
    CHECK(takes(ring(gpus, "reducescatter"), bytes) == (n - 1) * (transfer_alone(chunk) + reduction_ps(chunk)));
    // Nothing is added up: the time is that of our own ring, also in packets.
    for (const auto fidelity : {network::Fidelity::analytic, network::Fidelity::packet}) {
      CHECK(takes(ring(gpus, "allgather"), bytes, fidelity) == alone("all_gather", bytes, groups_of(n), n, fidelity));
      CHECK(takes(ring(gpus, "allgather"), bytes, fidelity) == (n - 1) * transfer_alone(chunk, fidelity));
    }
  }
}

TEST_CASE("all pairs take two transfers and the reductions of a chunk between them, flags of LL included") {
  for (const int gpus : {2, 4, 8}) {
    const std::int64_t chunk = 32 << 10;
    CAPTURE(gpus);
    CHECK(takes(all_pairs(gpus), gpus * chunk) == 2 * transfer_alone(2 * chunk) + (gpus - 1) * reduction_ps(chunk));
    // In packets the transfers of a GPU share its link.
    CHECK(takes(all_pairs(gpus), gpus * chunk, network::Fidelity::packet) >=
          2 * transfer_alone(2 * chunk) + (gpus - 1) * reduction_ps(chunk));
  }
  XmlAlgorithm ll128 = all_pairs(4);
  ll128.protocol = "LL128";
  CHECK(takes(ll128, 4 * 120'000) == 2 * transfer_alone(128'000) + 3 * reduction_ps(120'000));
}

TEST_CASE("chunks beyond what a loop of the protocol moves go in several, one after the other") {
  // Of Simple, 2 MiB a loop: 5 MiB are two loops of 2 MiB and one of 1 MiB.
  const std::int64_t mib = 1 << 20;
  const auto once = [&](std::int64_t chunk) { return 6 * transfer_alone(chunk) + 3 * reduction_ps(chunk); };
  CHECK(takes(ring(4), 4 * 5 * mib) == 2 * once(2 * mib) + once(mib));
}

TEST_CASE("a step that copies moves its bytes twice, and one of several chunks moves them together") {
  // An all-to-all out of place of two GPUs: each copies its own half and exchanges the other.
  XmlAlgorithm exchange{"alltoall", "Simple", 4, false, {}, 0};
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string own = fmt::format("{}", 2 * gpu), other = fmt::format("{}", 2 - 2 * gpu);
    exchange.gpus.push_back(
        {{1 - gpu, 1 - gpu, 0, {{"s", "i" + other, "o" + own, 2}, {"r", "i" + own, "o" + other, 2}}},
         {-1, -1, -1, {{"cpy", "i" + own, "o" + own, 2}}}});
  }
  const std::int64_t half = 1 << 20;
  const compute::Gpu on = gpu();
  const Time copy = std::llround(2 * static_cast<double>(half) / (on.memory_gb_per_s * on.memory_efficiency) * 1e3);
  CHECK(takes(exchange, 2 * half) == std::max(transfer_alone(half), copy));
  for (auto& blocks : exchange.gpus) {  // the exchange waits for the copy
    blocks[1].steps[0].is_waited_for = true;
    blocks[0].steps.insert(blocks[0].steps.begin(), {"nop", "i-1", "o-1", 0, 1, 0});
  }
  CHECK(takes(exchange, 2 * half) == transfer_alone(half) + copy);
}

TEST_CASE("a connection has as many transfers under way as its protocol has slots") {
  CHECK(error(out_of_order("LL")) == "no error");
  CHECK_THAT(error(out_of_order("Simple")),
             Contains("waits in a circle: it sends to gpu 1 on channel 0; gpu 1, tb 0, step 1 waits "
                      "for step 0; gpu 1, tb 1, step 0 receives from gpu 0 on channel 1; gpu 0, tb 1, step 0 waits for "
                      "step 2"));
}

TEST_CASE("an algorithm that is not the collective that it says is refused at its step") {
  // GPU 2 adds what it has of chunk 1 to chunk 0, which it receives in its second step.
  XmlAlgorithm offset = ring(4);
  offset.gpus[2][0].steps[2].source = "i1";
  CHECK_THAT(error(offset), Contains("a.xml:") && Contains("gpu 2, tb 0, step 2 (rrs): adds chunk 0") &&
                                Contains(" to chunk 1 of gpu 2"));
  XmlAlgorithm twice = ring(4);
  twice.gpus[1][0].steps[4].type = "rrcs";
  CHECK_THAT(error(twice), Contains("gpu 1, tb 0, step 4 (rrcs): adds ") && Contains("a contribution counts twice"));
  XmlAlgorithm stored = ring(4);
  stored.gpus[3][0].steps[6].destination = "i0";
  CHECK_THAT(error(stored),
             Contains("gpu 3, tb 0, step 6 (r): ends with chunk 1, the sum of gpus 0, 1, 2, 3 in chunk 0 "
                      "of the output of gpu 3, where chunk 0, the sum of gpus 0, 1, 2, 3 is right"));
  CHECK_THAT(error(with(ring(4).text(), "allreduce", "alltoall")), Contains(" is right"));
  XmlAlgorithm unwritten = all_pairs(3);
  unwritten.scratch = 5;
  unwritten.gpus[0][2].steps[0].source = "s4";
  CHECK_THAT(error(unwritten),
             Contains("gpu 0, tb 2, step 0 (re): reads chunk 4 of its scratch, which nothing has written"));
}

TEST_CASE("transfers that do not meet, and thread blocks that wait in a circle, are refused at their steps") {
  XmlAlgorithm lost = ring(4);
  lost.gpus[1][0].steps.pop_back();
  CHECK_THAT(error(lost), Contains("gpu 0, tb 0, step 5 (rcs): what is sent to gpu 1 is never received"));
  XmlAlgorithm missing = ring(4);
  missing.gpus[0][0].steps[5].type = "r";
  CHECK_THAT(error(missing),
             Contains("gpu 1, tb 0, step 6 (r): receives from gpu 0 on channel 0, which sends nothing more there"));
  XmlAlgorithm circle = ring(3);
  for (auto& blocks : circle.gpus) blocks[0].steps.erase(blocks[0].steps.begin());
  CHECK_THAT(error(circle), Contains("gpu 0, tb 0, step 0 (rrs): waits in a circle: it receives "
                                     "from gpu 2 on channel 0; gpu 2, tb 0, step 0 receives from gpu 1 on channel 0; "
                                     "gpu 1, tb 0, step 0 receives from gpu 0 on channel 0"));
  XmlAlgorithm local = all_pairs(2);
  local.gpus[0][0].steps[0].wait_block = 1, local.gpus[0][0].steps[0].wait_step = 0;
  CHECK_THAT(error(local), Contains("waits in a circle"));
  XmlAlgorithm counts = ring(2);
  counts.chunks = 4;
  counts.gpus[0][0].steps[0].count = 2;
  CHECK_THAT(error(counts), Contains("gpu 1, tb 0, step 1 (rrcs): receives 1 chunks, and gpu 0, tb 0, step 0 sends 2"));
}

TEST_CASE("thread blocks that do not wait where they must are refused, whoever comes first") {
  XmlAlgorithm early = all_pairs(3);
  early.gpus[1][1].steps[2].wait_block = -1, early.gpus[1][1].steps[2].wait_step = -1;
  CHECK_THAT(error(early), Contains("gpu 1, tb ") && Contains(" without waiting for gpu 1, tb "));
  XmlAlgorithm hasty = all_pairs(3);
  hasty.gpus[2][2].steps[1].wait_block = -1, hasty.gpus[2][2].steps[1].wait_step = -1;
  CHECK_THAT(error(hasty), Contains("gpu 2, tb 2, step 1 (re): reads chunk 1 of its scratch"));
}

TEST_CASE("what an algorithm's XML must not say is refused with its line") {
  const std::string text = ring(2).text();
  CHECK_THAT(error(with(text, "<algo", "<algorithm")), Contains("a.xml:1: <algorithm> stands where <algo> is right"));
  CHECK_THAT(error(with(text, "</algo>", "")), Contains("the file ends inside <algo>"));
  CHECK_THAT(error(with(text, " ngpus=\"2\"", "")), Contains("a.xml:1: <algo> lacks 'ngpus'"));
  CHECK_THAT(error(with(text, "ngpus=\"2\"", "ngpus=\"3\"")), Contains("has 2 <gpu>, and ngpus is 3"));
  CHECK_THAT(error(with(text, "\"allreduce\"", "\"broadcast\"")),
             Contains("'coll' must be one of allreduce, allgather"));
  CHECK_THAT(error(with(text, "\"Simple\"", "\"simple\"")), Contains("'proto' must be one of Simple, LL, LL128"));
  CHECK_THAT(error(with(text, "inplace=\"1\"", "inplace=\"0\" outofplace=\"0\"")), Contains("it is for no buffers"));
  CHECK_THAT(error(with(text, "<gpu id=\"0\"", "<gpu id=\"1\"")), Contains("a.xml:2: <gpu> 1 stands where 0 is right"));
  CHECK_THAT(error(with(text, "send=\"1\"", "send=\"0\"")),
             Contains("a.xml:3: 'send' is the thread block's own gpu 0"));
  CHECK_THAT(error(with(text, "send=\"1\"", "send=\"-1\"")),
             Contains("a.xml:4: s sends, and the thread block's 'send' is -1"));
  CHECK_THAT(error(with(text, "chan=\"0\"", "chan=\"64\"")), Contains("'chan' must be a number from -1 to 63"));
  CHECK_THAT(error(with(text, "s=\"1\"", "s=\"2\"")), Contains("a.xml:5: step 2 stands where 1 is right"));
  CHECK_THAT(error(with(text, "\"rrcs\"", "\"put\"")),
             Contains("a.xml:5: 'type' must be one of s, r, rcs, rrs, rrc, "));
  CHECK_THAT(error(with(text, "srcoff=\"0\"", "srcoff=\"2\"")),
             Contains("a.xml:4: 'srcoff' 2 and 'cnt' 1 go beyond the 2 chunks of buffer 'i'"));
  CHECK_THAT(error(with(text, "cnt=\"1\"", "cnt=\"0\"")), Contains("'cnt' must be a number from 1 to "));
  CHECK_THAT(error(with(text, "depid=\"-1\"", "depid=\"0\"")), Contains("one of 'depid' and 'deps' is -1"));
  CHECK_THAT(error(with(text, "depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"0\"")),
             Contains("a.xml:4: waits for step 0 of tb 1, which gpu 0 does not have"));
  CHECK_THAT(error(with(text, "depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"2\"")),
             Contains("a.xml:4: waits for step 2 of tb 0, whose 'hasdep' is 0"));
  XmlAlgorithm two = ring(2);
  two.gpus[0].push_back({1, -1, 0, {}});
  CHECK_THAT(error(two), Contains("tb 1 sends to gpu 1 on channel 0, as tb 0 does"));
}

TEST_CASE("an algorithm needs bytes that its chunks divide") {
  CHECK_THAT(error(ring(3).text(), 0), Contains("is for any size: give that of its all_reduce by --bytes"));
  CHECK_THAT(error(ring(3).text(), 1'000), Contains("--bytes 1000 is no multiple of that; 1002 is"));
  CHECK_THAT(error(ring(8).text(), std::int64_t{1} << 45), Contains("give fewer bytes"));
}

TEST_CASE("programs of an algorithm say what was read and assumed") {
  const programs::Imported imported = msccl::import_algorithm(
      with(all_pairs(4).text(), "inplace=\"1\"", "inplace=\"1\" minBytes=\"0\" maxBytes=\"65536\""), "a.xml",
      {1 << 20});
  CHECK(imported.programs.name == "test");
  CHECK_THAT(imported.programs.notes[0], Contains("8 slots free") && Contains("flags of LL"));
  const std::string told = account(imported);
  CHECK_THAT(told, Contains("all_reduce of 1048576 bytes on 4 GPUs, protocol LL, 16 thread blocks, up to 4 on a GPU; "
                            "chunks of 262144 bytes in 8 loops"));
  CHECK_THAT(told, Contains("a symbolic run in place ends with what the collective demands on every GPU"));
  CHECK_THAT(told, Contains("it is meant for 0 to 65536 bytes: MSCCL would not choose it"));
  // A ring's GPUs do the same.
  CHECK(msccl::import_algorithm(ring(8).text(), "a.xml", {8 << 10}).programs.programs.size() == 1);
}
