#include "experiments/import/topology.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "core/sharing/union_find.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/scalar.hpp"
#include "topologies/parts/connectivity.hpp"
#include "topologies/parts/limits.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;
using core::network::VertexKind;

/// Reads tokens between blanks and line ends, each with its line number.
class TokenReader {
 public:
  TokenReader(std::string_view text, const std::string& file)
      : rest_(text), file_(std::make_shared<const std::string>(file)) {}

  bool at_end() {
    skip();
    return rest_.empty();
  }
  Node next(const char* what) {
    if (at_end()) fail(fmt::format("the file ends where {} should stand", what));
    Node token;
    token.kind = Node::Kind::scalar;
    token.file = file_;
    token.line = line_;
    token.text = rest_.substr(0, rest_.find_first_of(" \t\r\n"));
    rest_.remove_prefix(token.text.size());
    return token;
  }
  std::int64_t count(const char* what, std::int64_t minimum, std::int64_t maximum) {
    const Node token = next(what);
    const auto value = core::number_in<std::int64_t>(token.text);
    if (!value || *value < minimum || *value > maximum)
      token.fail(fmt::format("{} must be an integer from {} to {}, not {}", what, minimum, maximum, describe(token)));
    return *value;
  }
  /// Reads a quantity with its unit, such as "400Gbps" or "0.0005ms".
  std::int64_t quantity(const char* what, const char* unit, double maximum) {
    const Node token = next(what);
    core::OptionInfo info;
    info.unit = unit;
    info.minimum = 1;
    info.maximum = maximum;
    const bool has_no_unit = token.text.find_first_not_of("0123456789.") == std::string::npos;
    if (has_no_unit)
      token.fail(fmt::format("{} must have a unit, as in {}, not {}", what, info.unit == "ps" ? "0.0005ms" : "400Gbps",
                             describe(token)));
    return std::get<std::int64_t>(read_value(token, info, what));
  }
  int line() const { return line_; }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, *file_, line_); }

 private:
  void skip() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos) {
      line_ += rest_.front() == '\n';
      rest_.remove_prefix(1);
    }
  }
  std::string_view rest_;
  std::shared_ptr<const std::string> file_;
  int line_ = 1;
};

struct Header {
  std::int64_t nodes, gpus_per_server, nvswitches, switches, links;
  std::int64_t gpus() const { return nodes - nvswitches - switches; }
};

Header read_header(TokenReader& tokens) {
  Header header{};
  header.nodes = tokens.count("the number of nodes", 1, topologies::kMaxVertices);
  header.gpus_per_server = tokens.count("the GPUs of a server", 1, header.nodes);
  header.nvswitches = tokens.count("the number of NVSwitches", 0, header.nodes - 1);
  header.switches = tokens.count("the number of switches", 0, header.nodes - 1 - header.nvswitches);
  header.links = tokens.count("the number of links", 0, topologies::kMaxCables);
  tokens.next("the type of the GPUs");  // ignored, since the cluster names its GPU
  if (header.gpus() % header.gpus_per_server != 0)
    tokens.fail(
        fmt::format("{} nodes less {} NVSwitches and {} switches are {} GPUs, no multiple of the {} of a server",
                    header.nodes, header.nvswitches, header.switches, header.gpus(), header.gpus_per_server));
  return header;
}

/// Returns the vertex of every node in the file: GPUs first, then NVSwitches and switches in the order of the second
/// line.
std::vector<std::uint32_t> add_vertices(Graph& graph, const Header& header, TokenReader& tokens) {
  constexpr std::uint32_t kGpu = UINT32_MAX;
  std::vector<std::uint32_t> vertex(static_cast<std::size_t>(header.nodes), kGpu);
  const std::int64_t switch_count = header.nvswitches + header.switches;
  for (std::int64_t i = 0; i < switch_count; ++i) {
    const std::int64_t number = tokens.count("the number of a switch", 0, header.nodes - 1);
    auto& slot = vertex[static_cast<std::size_t>(number)];
    if (slot != kGpu) tokens.fail(fmt::format("node {} is named twice among the switches", number));
    slot = static_cast<std::uint32_t>(header.gpus() + i);
  }
  for (std::uint32_t& slot : vertex)
    if (slot == kGpu) slot = graph.add_vertex(VertexKind::gpu, fmt::format("gpu{}", graph.gpus));
  for (std::int64_t i = 0; i < header.nvswitches; ++i)
    graph.add_vertex(VertexKind::scale_up_switch, fmt::format("nvswitch{}", i));
  for (std::int64_t i = 0; i < header.switches; ++i)
    graph.add_vertex(VertexKind::network_switch, fmt::format("switch{}", i));
  return vertex;
}

LinkKind kind_of(const Graph& graph, const Header& header, std::uint32_t a, std::uint32_t b,
                 const TokenReader& tokens) {
  const auto either_is = [&](VertexKind kind) { return graph.vertices[a] == kind || graph.vertices[b] == kind; };
  const bool nvswitch = either_is(VertexKind::scale_up_switch), network = either_is(VertexKind::network_switch);
  if (nvswitch && network) tokens.fail("an NVSwitch cannot be cabled to a switch of the network");
  const bool inside = !network && a / header.gpus_per_server == b / header.gpus_per_server;
  return nvswitch || inside ? LinkKind::scale_up : LinkKind::network;
}

void read_link(Graph& graph, const Header& header, const std::vector<std::uint32_t>& vertex, TokenReader& tokens) {
  const std::int64_t a = tokens.count("the source of a link", 0, header.nodes - 1);
  const int line = tokens.line();
  const std::int64_t b = tokens.count("the destination of a link", 0, header.nodes - 1);
  if (a == b) tokens.fail(fmt::format("a link from node {} to itself", a));
  Link link;
  link.from = vertex[static_cast<std::size_t>(a)];
  link.to = vertex[static_cast<std::size_t>(b)];
  link.kind = kind_of(graph, header, link.from, link.to, tokens);
  link.bits_per_second = tokens.quantity("the rate of a link", "bps", 1e15);
  link.latency_ps = tokens.quantity("the latency of a link", "ps", 1e15);
  const Node loss = tokens.next("the error rate of a link");
  if (loss.text.find_first_not_of("0.") != std::string::npos)
    loss.fail(fmt::format("the error rate of a link must be 0, not {}: links here lose nothing", describe(loss)));
  if (tokens.line() != line) tokens.fail("a link is one line: source, destination, rate, latency, error rate");
  graph.add_cable(link);
}

/// Checks that scale-up links join only GPUs of one server.
void check_servers(const TopologyFile& file, const TokenReader& tokens) {
  const Graph& graph = file.graph;
  core::sharing::UnionFind components(graph.vertices.size());
  for (const Link& link : graph.links)
    if (link.kind == LinkKind::scale_up) components.join(link.from, link.to);
  std::vector<std::int64_t> server(graph.vertices.size(), -1);
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
    const std::int64_t own_server = gpu / file.gpus_per_server;
    std::int64_t& server_of_set = server[components.root(gpu)];
    if (server_of_set >= 0 && server_of_set != own_server)
      tokens.fail(fmt::format("NVSwitches join GPU {} to server {}; they may join the GPUs of one server only, {} each",
                              gpu, server_of_set, file.gpus_per_server));
    server_of_set = own_server;
  }
}

}  // namespace

TopologyFile parse_topology(std::string_view text, const std::string& name) {
  check_text(text, name);
  TokenReader tokens(text, name);
  const Header header = read_header(tokens);
  TopologyFile file;
  file.gpus_per_server = header.gpus_per_server;
  const auto vertex = add_vertices(file.graph, header, tokens);
  for (std::int64_t i = 0; i < header.links; ++i) read_link(file.graph, header, vertex, tokens);
  if (!tokens.at_end()) tokens.next("").fail(fmt::format("text follows the {} links of the first line", header.links));
  check_servers(file, tokens);
  if (const auto pair = topologies::find_unreachable_pair(file.graph))
    tokens.fail(fmt::format("no links lead from GPU {} to GPU {}", pair->first, pair->second));
  return file;
}

}  // namespace manyworlds::experiments::import
