#include "experiments/traces/other_formats.hpp"

#include <array>

namespace manyworlds::experiments::traces {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kTarMagic = 257;  // where an archive of tar has "ustar"

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether a JSON text has a member with a text that begins so, with a blank behind its colon or without.
bool has_member(std::string_view text, std::string_view name, std::string_view value) {
  for (const std::string_view colon : {":"sv, ": "sv}) {
    std::string member = "\"";
    member.append(name).append("\"").append(colon).append("\"").append(value);
    if (has(text, member)) return true;
  }
  return false;
}

/// Returns the first character that is no blank; 0: there is none.
char first_of(std::string_view head) {
  const std::size_t at = head.find_first_not_of(" \t\r\n");
  return at == head.npos ? '\0' : head[at];
}
bool is_json(std::string_view head) {
  return first_of(head) == '{' || first_of(head) == '[';
}

struct OtherFormat {
  const char* message;
  bool (*is)(const std::string& path, std::string_view head);
};
using Path = const std::string&;
using Head = std::string_view;

constexpr std::array kOthers{
    OtherFormat{"is a pointer of Git LFS, not the file itself: fetch that with `git lfs pull`",
                [](Path, Head head) { return head.starts_with("version https://git-lfs.github.com/"); }},
    OtherFormat{"is an archive of zip: unpack it, and give the files in it",
                [](Path, Head head) { return head.starts_with("PK\x03\x04"); }},
    OtherFormat{"is an archive of tar: unpack it, and give the files in it",
                [](Path, Head head) { return head.size() > kTarMagic && head.substr(kTarMagic).starts_with("ustar"); }},
    OtherFormat{"is compressed by xz: unpack it; what gzip compressed is read as it is",
                [](Path, Head head) {
                  return head.starts_with(
                      "\xfd"
                      "7zXZ\0"sv);
                }},
    OtherFormat{"is compressed by bzip2: unpack it; what gzip compressed is read as it is",
                [](Path, Head head) { return head.starts_with("BZh"); }},
    OtherFormat{"is compressed by zstd: unpack it; what gzip compressed is read as it is",
                [](Path, Head head) { return head.starts_with("\x28\xb5\x2f\xfd"); }},
    OtherFormat{"is a text in UTF-16: save it as UTF-8",
                [](Path, Head head) { return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"); }},
    OtherFormat{"is a report of Nsight Systems: export it with `nsys export --type sqlite`, and give that",
                [](Path path, Head) { return path.ends_with(".nsys-rep") || path.ends_with(".qdrep"); }},
    OtherFormat{"is a report of Nsight Compute, which is of kernels alone: profile with Nsight Systems",
                [](Path path, Head) { return path.ends_with(".ncu-rep"); }},
    OtherFormat{"is a profile of JAX, XLA or TensorFlow (XPlane), which is not read: profile with Nsight Systems, and "
                "give its export",
                [](Path path, Head head) {
                  return path.ends_with(".xplane.pb") ||
                         (head.starts_with('\n') && (has(head, "/host:metadata") || has(head, "/host:CPU") ||
                                                     has(head, "/device:GPU:") || has(head, "/device:TPU:")));
                }},
    OtherFormat{"is a trace of JAX, XLA or TensorFlow, which is not read: profile with Nsight Systems, and give its "
                "export",
                [](Path, Head head) {
                  return is_json(head) && (has_member(head, "name", "/device:") || has_member(head, "name", "/host:"));
                }},
    OtherFormat{"is a trace of Ascend's profiler, which is not read: traces of NVIDIA's and AMD's GPUs are",
                [](Path, Head head) { return is_json(head) && has_member(head, "name", "Ascend Hardware"); }},
    OtherFormat{"is a trace of NCCL's example of a profiler plugin, which is not read: logs of its Inspector are",
                [](Path, Head head) {
                  return is_json(head) &&
                         (has_member(head, "cat", "GROUP_API") || has_member(head, "cat", "COLL_API") ||
                          has_member(head, "cat", "P2P_API") || has_member(head, "cat", "KERNEL_LAUNCH") ||
                          (has_member(head, "cat", "GROUP") && has(head, "groupId")));
                }},
    OtherFormat{"is an execution trace of PyTorch's host, which says nothing of the device: give the trace of the "
                "profiler, and this one with --host-traces",
                [](Path, Head head) {
                  return first_of(head) == '{' && has(head, "\"schema\"") && has(head, "\"nodes\"") &&
                         has(head, "\"start_ts\"");
                }},
    OtherFormat{"is of rocprofv3, which is not read: profile with PyTorch's profiler, which records AMD's GPUs too",
                [](Path, Head head) { return is_json(head) && has(head, "\"rocprofiler-sdk-tool\""); }},
    OtherFormat{"is a snapshot of PyTorch's memory, which says nothing of time: give a trace of its profiler",
                [](Path, Head head) {
                  return head.starts_with('\x80') && (has(head, "device_traces") || has(head, "allocator_settings"));
                }},
    OtherFormat{"is a trace of Perfetto's own format, which is not read: give the JSON that the profiler wrote",
                [](Path path, Head) { return path.ends_with(".pftrace") || path.ends_with(".perfetto-trace"); }}};

}  // namespace

std::string other_format(const std::string& path, std::string_view head) {
  for (const OtherFormat& one : kOthers)
    if (one.is(path, head)) return one.message;
  return {};
}

}  // namespace manyworlds::experiments::traces
