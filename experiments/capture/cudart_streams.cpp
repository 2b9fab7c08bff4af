// CUDA's functions of streams and events.
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

constexpr float kElapsedMs = 1;  // between any two events: the header of the record says so
constexpr int kHighestPriority = -5, kLowestPriority = 0;

Error create_stream(const char* call, void** out, unsigned flags, int priority) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  if (out == nullptr || flags > 1) return recorded(line, kInvalidValue);
  Stream* stream = new Stream{of.next_stream++, thread_state().device, flags, priority};
  of.streams.insert(stream);
  *out = stream;
  line.number("stream", stream->number).number("flags", flags).number("priority", priority);
  return recorded(line.number("device", stream->device));
}

Error on_stream(const char* call, void* stream) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(stream);
  return recorded(Line(call).number("stream", number), number < 0 ? kInvalidHandle : kSuccess);
}

Error create_event(const char* call, void** out, unsigned flags) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  if (out == nullptr || flags > 7) return recorded(line, kInvalidValue);
  Event* event = new Event{of.next_event++, thread_state().device, flags};
  of.events.insert(event);
  *out = event;
  return recorded(line.number("event", event->number).number("flags", flags));
}

int event_number(void* handle) {
  Event* event = static_cast<Event*>(handle);
  return session().events.contains(event) ? event->number : -1;
}

Error on_event(const char* call, void* event) {
  const std::lock_guard lock(session().mutex);
  const int number = event_number(event);
  return recorded(Line(call).number("event", number), number < 0 ? kInvalidHandle : kSuccess);
}

/// A stream that waits for an event of a captured one is captured too.
void take_up(const std::string& call, Event& event, void* handle) {
  Stream* stream = stream_number(handle) < 2 ? nullptr : static_cast<Stream*>(handle);
  if (call == "cudaStreamWaitEvent") {
    if (stream != nullptr && event.graph >= 0) stream->graph = event.graph;
  } else {
    event.graph = stream == nullptr ? -1 : stream->graph;
  }
}

Error event_and_stream(const char* call, void* event, void* stream, unsigned flags) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  line.number("event", event_number(event)).number("stream", stream_number(stream));
  if (event_number(event) < 0 || stream_number(stream) < 0) return recorded(line, kInvalidHandle);
  if (flags > 1) return recorded(line, kInvalidValue);
  take_up(call, *static_cast<Event*>(event), stream);
  return recorded(flags == 0 ? line : line.number("flags", flags));
}

}  // namespace

extern "C" {

Error cudaStreamCreate(void** out) {
  return create_stream("cudaStreamCreate", out, 0, 0);
}
Error cudaStreamCreateWithFlags(void** out, unsigned flags) {
  return create_stream("cudaStreamCreateWithFlags", out, flags, 0);
}
Error cudaStreamCreateWithPriority(void** out, unsigned flags, int priority) {
  return create_stream("cudaStreamCreateWithPriority", out, flags, priority);
}
Error cudaStreamSynchronize(void* stream) {
  return on_stream("cudaStreamSynchronize", stream);
}
/// Work is done as soon as it is issued, so that a program that polls goes on.
Error cudaStreamQuery(void* stream) {
  return on_stream("cudaStreamQuery", stream);
}
Error cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return event_and_stream("cudaStreamWaitEvent", event, stream, flags);
}

Error cudaStreamDestroy(void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Stream* stream = static_cast<Stream*>(handle);
  const bool is_made = of.streams.contains(stream);
  Line line("cudaStreamDestroy");
  line.number("stream", is_made ? stream->number : -1);
  if (!is_made) return recorded(line, kInvalidHandle);
  of.streams.erase(stream);
  delete stream;
  return recorded(line);
}

Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const std::lock_guard lock(session().mutex);
  if (least != nullptr) *least = kLowestPriority;
  if (greatest != nullptr) *greatest = kHighestPriority;
  return recorded(Line("cudaDeviceGetStreamPriorityRange"));
}

/// The flags and the priority with which a stream was made; those of the default streams are 0.
Error cudaStreamGetFlags(void* handle, unsigned* out) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(handle);
  if (number < 0 || out == nullptr) return recorded(Line("cudaStreamGetFlags"), kInvalidHandle);
  *out = number < 2 ? 0 : static_cast<Stream*>(handle)->flags;
  return recorded(Line("cudaStreamGetFlags").number("stream", number));
}
Error cudaStreamGetPriority(void* handle, int* out) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(handle);
  if (number < 0 || out == nullptr) return recorded(Line("cudaStreamGetPriority"), kInvalidHandle);
  *out = number < 2 ? 0 : static_cast<Stream*>(handle)->priority;
  return recorded(Line("cudaStreamGetPriority").number("stream", number));
}

/// Work is done as soon as it is issued, so the function of the host is called at once.
Error cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  {
    const std::lock_guard lock(session().mutex);
    Line line("cudaLaunchHostFunc");
    line.number("stream", stream_number(stream));
    if (function == nullptr) return recorded(line, kInvalidValue);
    if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
    recorded(line);
  }
  function(data);
  return kSuccess;
}

/// The older form of it, which is told the stream and that nothing failed.
Error cudaStreamAddCallback(void* stream, void (*function)(void*, Error, void*), void* data, unsigned flags) {
  {
    const std::lock_guard lock(session().mutex);
    Line line("cudaStreamAddCallback");
    line.number("stream", stream_number(stream));
    if (function == nullptr || flags != 0) return recorded(line, kInvalidValue);
    if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
    recorded(line);
  }
  function(stream, kSuccess, data);
  return kSuccess;
}

Error cudaEventCreate(void** out) {
  return create_event("cudaEventCreate", out, 0);
}
Error cudaEventCreateWithFlags(void** out, unsigned flags) {
  return create_event("cudaEventCreateWithFlags", out, flags);
}
Error cudaEventRecord(void* event, void* stream) {
  return event_and_stream("cudaEventRecord", event, stream, 0);
}
Error cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return event_and_stream("cudaEventRecordWithFlags", event, stream, flags);
}
Error cudaEventSynchronize(void* event) {
  return on_event("cudaEventSynchronize", event);
}
Error cudaEventQuery(void* event) {
  return on_event("cudaEventQuery", event);
}

Error cudaEventElapsedTime(float* ms, void* from, void* to) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaEventElapsedTime");
  line.number("from", event_number(from)).number("to", event_number(to));
  if (ms == nullptr) return recorded(line, kInvalidValue);
  if (event_number(from) < 0 || event_number(to) < 0) return recorded(line, kInvalidHandle);
  *ms = kElapsedMs;
  return recorded(line);
}

Error cudaEventDestroy(void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line("cudaEventDestroy");
  line.number("event", event_number(handle));
  if (event_number(handle) < 0) return recorded(line, kInvalidHandle);
  Event* event = static_cast<Event*>(handle);
  of.events.erase(event);
  delete event;
  return recorded(line);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
