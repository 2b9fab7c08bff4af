#include "experiments/capture/session.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>

namespace manyworlds::experiments::capture {
namespace {

Line header(const Settings& settings) {
  Line line("capture");
  line.number("version", 1).number("rank", settings.rank).number("world", settings.world);
  line.number("cuda", kCudaMajor);
  line.text("gpu", settings.device->catalog_name).number("devices", settings.devices);
  line.number("memory_bytes", settings.memory_bytes);
  return line.json("assumed",
                   "[\"no kernel, copy or collective is computed: what the host reads back is zeros\","
                   "\"time between two events is always 1 ms\","
                   "\"allocations of more than 1 MiB count as whole pages of 2 MiB\","
                   "\"the capacity is the program's alone: the context and libraries take none of it\"]");
}

int thread_number(Session& of) {
  ThreadState& state = thread_state();
  if (state.number < 0) state.number = of.next_thread++;
  return state.number;
}

[[noreturn]] void say_and_exit(const std::string& message) {
  std::fprintf(stderr, "manyworlds capture: %s\n", message.c_str());
  std::fflush(stderr);
  _exit(2);
}

std::atomic<Session*>& opened() {
  static std::atomic<Session*> session = nullptr;
  return session;
}

/// The last line of a program that ended by itself: it runs when the library is left, after the program's own ends. A
/// record without it is of a program that was stopped.
__attribute__((destructor)) void write_end() {
  Session* of = opened();
  if (of != nullptr) of->record.write(Line("end"), thread_number(*of));
}

Session* open_session() {
  try {
    Session* fresh = new Session(read_settings());
    opened() = fresh;
    fresh->record.write(header(fresh->settings), thread_number(*fresh));
    return fresh;
  } catch (const std::exception& error) {
    say_and_exit(error.what());
  }
}

}  // namespace

Session::Session(Settings given)
    : settings(std::move(given)),
      record(settings.folder, settings.rank),
      memory(static_cast<std::size_t>(settings.memory_bytes)) {}

Session& session() {
  static Session* const only = open_session();
  return *only;
}

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

void end_capture(const std::string& message) {
  session().record.write(Line("stopped").text("because", message), thread_number(session()));
  say_and_exit(message);
}

void end_unmodelled(const char* function) {
  end_capture(std::string(function) + " is not modelled: the program cannot be captured beyond this call");
}

Error recorded(Line line, Error error) {
  if (error != kSuccess) {
    line.number("error", error);
    thread_state().last_error = error;
  }
  session().record.write(line, thread_number(session()));
  return error;
}

int stream_number(void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= 1) return 0;  // null, and cudaStreamLegacy
  if (value == 2) return 1;  // cudaStreamPerThread
  Stream* stream = static_cast<Stream*>(handle);
  return session().streams.contains(stream) ? stream->number : -1;
}

std::string place(const void* pointer) {
  if (pointer == nullptr) return "null";
  const auto found = session().memory.find(pointer);
  if (!found) return "\"host\"";
  return "[" + std::to_string(found->allocation->id) + "," + std::to_string(found->offset) + "]";
}

}  // namespace manyworlds::experiments::capture
