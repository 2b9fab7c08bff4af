// `nvidia-smi topo -m`: a matrix of GPUs and NICs. NV18 are 18 NVLinks, PIX and PXB PCIe switches alone, PHB, NODE and
// SYS a way over CPUs; below it, "NIC0: mlx5_0" gives names.
#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "experiments/clusters/fabric.hpp"
#include "experiments/discovery/lines.hpp"
#include "experiments/discovery/node_inside.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

constexpr std::size_t kMaxColumns = 4'096;

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 && word.find_first_not_of("0123456789", 3) == word.npos;
}

bool is_nic(std::string_view word) {
  return (word.starts_with("NIC") && word.size() > 3 && word.find_first_not_of("0123456789", 3) == word.npos) ||
         word.starts_with("mlx");
}

/// Returns a line without the escapes that underline its header.
std::string without_escapes(std::string_view line) {
  std::string result;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    result += line[i];
  }
  return result;
}

class MatrixReader {
 public:
  explicit MatrixReader(const std::string& file) : file_(file) {}

  void read_line(const std::string& text, int number) {
    const auto words = words_of(text);
    if (words.empty()) return;
    line_ = number;
    if (columns_.empty() && is_gpu(words[0]) && (words.size() == 1 || words[1] != "X")) return read_header(words);
    if (!columns_.empty() && (is_gpu(words[0]) || is_nic(words[0]))) return read_row(words);
    if (words.size() == 2 && words[0].starts_with("NIC") && words[0].ends_with(':'))
      names_[std::string(words[0].substr(0, words[0].size() - 1))] = std::string(words[1]);
  }

  NodeInside take() {
    if (columns_.empty()) fail("has no header of GPU0 GPU1 …");
    NodeInside node;
    node.format = "nvidia-smi";
    std::vector<std::int64_t> links;
    for (const std::string& column : columns_) {
      if (is_gpu(column)) {
        ++node.gpus;
        if (links_.count(column) == 0) fail(fmt::format("has no row of {}; the matrix is cut off", column));
        links.push_back(links_.at(column));
        continue;
      }
      const auto name = names_.find(column);
      node.nics.push_back({name == names_.end() ? column : name->second, 0, near_[column]});
    }
    node.nvlinks = usual_value(links);
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, file_, line_); }

  void read_header(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words) {
      if (!is_gpu(word) && !is_nic(word)) break;  // "CPU Affinity" and what follows
      if (columns_.size() == kMaxColumns) fail("has more columns than any node has devices");
      columns_.emplace_back(word);
    }
  }

  void read_row(const std::vector<std::string_view>& words) {
    const std::string row(words[0]);
    if (words.size() <= columns_.size())
      fail(fmt::format("row {} has {} fields of {}", row, words.size() - 1, columns_.size()));
    std::int64_t most = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view field = words[i + 1];
      const bool nvlink = field.starts_with("NV");
      const std::int64_t count = nvlink ? number_in<std::int64_t>(field.substr(2)).value_or(-1) : 0;
      constexpr std::string_view kOthers[] = {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PCI", "SOC"};
      if (count < 0 || (!nvlink && std::find(std::begin(kOthers), std::end(kOthers), field) == std::end(kOthers)))
        fail(fmt::format("row {} has '{}'; known are X, NV with a number, PIX, PXB, PHB, NODE and SYS", row, field));
      most = std::max(most, count);
      if (is_gpu(row) && is_nic(columns_[i]) && (field == "PIX" || field == "PXB"))
        near_[columns_[i]].push_back(number_in<std::int64_t>(std::string_view(row).substr(3)).value_or(0));
    }
    if (is_gpu(row)) links_[row] = most;
  }

  std::string file_;
  int line_ = 1;
  std::vector<std::string> columns_;
  std::map<std::string, std::int64_t> links_;  // of a GPU to another, the most
  std::map<std::string, std::vector<std::int64_t>> near_;
  std::map<std::string, std::string> names_;
};

}  // namespace

bool is_nvidia_smi_matrix(std::string_view text) {
  return text.find("GPU0") != text.npos && text.find("Affinity") != text.npos;
}

NodeInside parse_nvidia_smi_matrix(std::string_view text, const std::string& name) {
  import::check_size(text.size(), name);
  MatrixReader reader(name);
  for_each_line(text, [&](std::string_view line, int number) {
    const std::string plain = without_escapes(line);
    import::check_text(plain, name);
    reader.read_line(plain, number);
  });
  return reader.take();
}

}  // namespace manyworlds::experiments::clusters
