// The binding: what of the program Python calls in its own process. The rest of the package is in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/base/error.hpp"
#include "core/base/version.hpp"
#include "core/sharing/key.hpp"
#include "experiments/sweep/schema.hpp"
#include "farm/python/experiment_run.hpp"

namespace manyworlds::farm::python {

namespace {

namespace py = pybind11;

constexpr std::chrono::milliseconds kSignalsEvery{50};  // Ctrl-C is noticed within this time

/// Simulates without the interpreter's lock, which is taken for signals and `on_progress` alone: that gets simulations
/// done, their number (the step is the last), and the seconds of the step simulated so far.
std::string run(ExperimentRequest request, const py::object& on_progress) {
  const py::gil_scoped_release others_run;
  ExperimentRun running(std::move(request));  // behind the lock's release, so that it is waited for without the lock
  while (!running.wait(kSignalsEvery)) {
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) {
      running.stop();
      throw py::error_already_set();
    }
    const RunProgress& progress = running.progress();
    if (!on_progress.is_none())
      on_progress(progress.done.load(), progress.tasks.load(), static_cast<double>(progress.reached.load()) * 1e-12);
  }
  return running.result();
}

std::vector<std::string> names(const std::string& kind, const std::string& catalog) {
  std::vector<std::string> all;
  for (const auto& entry : experiments::list(kind, experiments::Catalog(catalog))) all.push_back(entry.name);
  return all;
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "What the package manyworlds computes in this process.";
  py::register_exception<core::InputError>(module, "InputError", PyExc_ValueError);
  py::register_exception<core::IoError>(module, "IoError", PyExc_OSError);
  module.def(
      "run",
      [](std::string text, std::string file, std::vector<std::string> set, std::string catalog,
         std::optional<std::int64_t> id, bool coupled, const py::object& on_progress) {
        return run({std::move(text), std::move(file), std::move(set), std::move(catalog), id, coupled}, on_progress);
      },
      py::arg("text"), py::arg("file"), py::arg("set"), py::arg("catalog"), py::arg("id"), py::arg("coupled"),
      py::arg("on_progress"), "Simulates one experiment; returns every column of its results as JSON.");
  module.def("names", &names, py::arg("kind"), py::arg("catalog"), "Names of the catalog: models, gpus, clusters, …");
  module.attr("version") = std::string(core::version());
  module.attr("build") = std::string(core::sharing::build_fingerprint());
}

}  // namespace manyworlds::farm::python
