// Algorithms of MSCCL for any number of GPUs, written as msccl-tools writes them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::experiments::testing {

struct XmlStep {
  std::string type, source, destination;  // a buffer and an offset, as in i3
  int count = 1, wait_block = -1, wait_step = -1;
  bool is_waited_for = false;
};
struct XmlBlock {
  int send = -1, receive = -1, channel = 0;
  std::vector<XmlStep> steps;
};
struct XmlAlgorithm {
  std::string collective, protocol = "Simple";
  int chunks = 1;
  bool in_place = true;
  std::vector<std::vector<XmlBlock>> gpus;
  int scratch = 0;

  std::string text() const {
    std::string xml = fmt::format(
        "<algo name=\"test\" proto=\"{}\" nchannels=\"64\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" "
        "inplace=\"{}\">\n",
        protocol, chunks, gpus.size(), collective, in_place ? 1 : 0);
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      xml += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"0\" s_chunks=\"{}\">\n", gpu, chunks, scratch);
      for (std::size_t i = 0; i < gpus[gpu].size(); ++i) {
        const XmlBlock& block = gpus[gpu][i];
        xml += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", i, block.send, block.receive,
                           block.channel);
        for (std::size_t s = 0; s < block.steps.size(); ++s) {
          const XmlStep& step = block.steps[s];
          xml += fmt::format(
              "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" "
              "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
              s, step.type, step.source.substr(0, 1), step.source.substr(1), step.destination.substr(0, 1),
              step.destination.substr(1), step.count, step.wait_block, step.wait_step, step.is_waited_for ? 1 : 0);
        }
        xml += "    </tb>\n";
      }
      xml += "  </gpu>\n";
    }
    return xml + "</algo>\n";
  }
};

/// A ring in place over one channel: chunk c begins at GPU c; the first round adds up, the second passes sums on.
inline XmlAlgorithm ring(int gpus, const std::string& collective = "allreduce") {
  XmlAlgorithm result{collective, "Simple", gpus, true, {}, 0};
  const bool reduces = collective != "allgather", gathers = collective != "reducescatter";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    XmlBlock block{(gpu + 1) % gpus, (gpu + gpus - 1) % gpus, 0, {}};
    const auto add = [&](const char* type, int distance) {
      // The sum of a reduce-scatter ends where its chunk is wanted.
      const int shift = collective == "reducescatter" ? 1 : 0;
      const std::string place =
          fmt::format("{}{}", collective == "allgather" ? 'o' : 'i', (gpu - distance - shift + 2 * gpus) % gpus);
      block.steps.push_back({type, place, place});
    };
    add("s", 0);
    if (reduces) {
      for (int i = 1; i < gpus - 1; ++i) add("rrs", i);
      add(gathers ? "rrcs" : "rrc", gpus - 1);
    }
    if (gathers) {
      for (int i = 1; i < gpus - 1; ++i) add("rcs", reduces ? i - 1 : i);
      add("r", reduces ? gpus - 2 : gpus - 1);
    }
    result.gpus.push_back({block});
  }
  return result;
}

/// All pairs in place (MSCCLang's one for small sizes): every GPU adds up its chunk of all others and sends it to all.
/// A thread block for each peer, and the last one, which adds up.
inline XmlAlgorithm all_pairs(int gpus) {
  XmlAlgorithm result{"allreduce", "LL", gpus, true, {}, gpus - 1};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    std::vector<XmlBlock> blocks;
    XmlBlock sum;
    const std::string own = fmt::format("i{}", gpu);
    for (int peer = 0; peer < gpus; ++peer) {
      if (peer == gpu) continue;
      const int slot = peer - (peer > gpu ? 1 : 0);
      const std::string from = fmt::format("s{}", slot), other = fmt::format("i{}", peer);
      blocks.push_back({peer, peer, 0, {{"s", other, from}, {"r", other, from}, {"s", own, own}, {"r", other, other}}});
      blocks.back().steps[1].is_waited_for = true;
      blocks.back().steps[2].wait_block = gpus - 1, blocks.back().steps[2].wait_step = gpus - 2;
      sum.steps.push_back({"re", from, own, 1, slot, 1});
    }
    sum.steps.back().is_waited_for = true;
    blocks.push_back(sum);
    result.gpus.push_back(blocks);
  }
  return result;
}

}  // namespace manyworlds::experiments::testing
