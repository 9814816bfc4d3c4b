#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#ifdef __APPLE__
#include <pthread.h>
#else
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "bindings/bindings.hpp"
#include "stream/batch_stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

// (number, begin, end, columns or None, whether it can be divided, indices of children without nulls)
using PyTask = std::tuple<uint64_t, uint64_t, uint64_t, nb::object, bool, std::vector<uint32_t>>;

// A Python object with the methods `more` and `read` as the host of a stream.
class PythonHost : public StreamHost {
 public:
  explicit PythonHost(nb::object ranges) : ranges_(std::move(ranges)) {}

  ~PythonHost() override {
    if (streams_stopped() && !PyGILState_Check()) {  // the interpreter is going away, its objects with it
      ranges_.release();
      for (nb::object& kept : kept_) kept.release();
      return;
    }
    nb::gil_scoped_acquire lock;
    nb::error_scope pending;  // streams end while exceptions are on their way
    kept_.clear();
    ranges_.reset();
  }

  bool more(std::vector<StreamTask>& tasks) override {
    return locked([&] {
      auto [found, left] = nb::cast<std::pair<std::vector<PyTask>, bool>>(ranges_.attr("more")());
      for (auto& [number, begin, end, columns, divisible, required] : found) {
        const Columns* native = columns.is_none() ? nullptr : nb::cast<const Columns*>(columns);
        if (native && (kept_.empty() || !kept_.back().is(columns))) kept_.push_back(columns);
        tasks.push_back({number, begin, end, native, divisible, std::move(required)});
      }
      return left;
    });
  }

  std::vector<Batch> read(const StreamTask& task) override {
    return locked([&] {
      std::vector<Batch> batches;
      for (nb::handle batch : ranges_.attr("read")(task.number, task.begin, task.end)) {
        Batch& moved = batches.emplace_back();
        batch.attr("_export_to_c")(reinterpret_cast<uintptr_t>(&moved.array));
        moved.bytes = nb::cast<uint64_t>(batch.attr("nbytes"));
      }
      return batches;
    });
  }

  void report(const StreamStatistics& done, bool last) override {
    locked([&] {
      ranges_.attr("report")(done.batches, done.rows, done.decoded_rows, done.bytes_read, done.seconds, last);
      return 0;
    });
  }

  // Only the main thread learns of signals, and only when it checks.
  void check() override {
    if (!is_main_thread()) return;
    locked([] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return 0;
    });
  }

  void unlocked(const std::function<void()>& wait) override {
    if (!Py_IsInitialized() || !PyGILState_Check()) return wait();
    nb::gil_scoped_release released;
    wait();
  }

 private:
  static bool is_main_thread() {
#ifdef __APPLE__
    return pthread_main_np() != 0;
#else
    return static_cast<pid_t>(syscall(SYS_gettid)) == getpid();
#endif
  }

  // Runs `call` under the interpreter lock and turns Python exceptions into text. What is not an error, such
  // as KeyboardInterrupt, is left where the owner of the stream finds it: text would not bring it back.
  template <typename Call>
  auto locked(Call call) -> decltype(call()) {
    if (streams_stopped()) throw std::runtime_error("the interpreter is exiting");
    nb::gil_scoped_acquire lock;
    nb::error_scope pending;
    try {
      return call();
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) {
        // Runs no Python code, which a signal could interrupt again.
        PyObject_SetAttrString(ranges_.ptr(), "interruption", error.value().ptr());
        // A consumer that does not know about it returns to the interpreter, which then raises it.
        nb::object consumer = nb::steal(PyObject_GetAttrString(ranges_.ptr(), "handed_over"));
        if (error.matches(PyExc_KeyboardInterrupt) && consumer.ptr() == Py_True) PyErr_SetInterrupt();
        PyErr_Clear();
        throw std::runtime_error("the stream was interrupted");
      }
      throw std::runtime_error(nb::str(error.value()).c_str());
    }
  }

  nb::object ranges_;
  std::vector<nb::object> kept_;  // decoders, as long as tasks point at them
};

// Exports a stream as a capsule of the Arrow PyCapsule interface.
nb::capsule batch_stream(nb::object ranges, const nb::object& schema, uint64_t batch_rows, uint64_t row_bytes,
                         uint64_t read_ahead, unsigned threads, uint64_t skip,
                         std::optional<uint64_t> limit) {
  nb::capsule exported = nb::cast<nb::capsule>(schema.attr("__arrow_c_schema__")());
  SharedSchema shared(*static_cast<ArrowSchema*>(exported.data("arrow_schema")));
  StreamOptions options{batch_rows, row_bytes, read_ahead, threads, skip, limit.value_or(UINT64_MAX)};
  auto stream = std::make_shared<BatchStream>(std::make_unique<PythonHost>(std::move(ranges)), options);
  auto out = std::make_unique<ArrowArrayStream>();
  BatchStream::export_to(std::move(stream), std::move(shared), *out);
  return nb::capsule(out.release(), "arrow_array_stream", [](void* held) noexcept {
    auto* unused = static_cast<ArrowArrayStream*>(held);
    if (unused->release) unused->release(unused);
    delete unused;
  });
}

}  // namespace

void bind_stream(nb::module_& m) {
  m.def("batch_stream", &batch_stream, "ranges"_a, "schema"_a, "batch_rows"_a, "row_bytes"_a, "read_ahead"_a,
        "threads"_a, "skip"_a = 0, "limit"_a = nb::none());
  m.def("stop_streams", &stop_streams, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace lance
