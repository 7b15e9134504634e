#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "python/bindings.h"
#include "python/session.h"

namespace drover {
namespace {

namespace py = pybind11;
using py::arg;

constexpr uint32_t kCopiersMax = 64;

// Memory of a session, for readers of the buffer protocol.
struct Floats {
  std::shared_ptr<PythonSession> owner;
  std::span<float> values;
};

using Settings = std::map<std::string, py::object>;

GroupSettings group_of(const Settings& settings) {
  GroupSettings group;
  OptimizerSettings& optimizer = group.optimizer;
  const std::map<std::string, double*> numbers = {{"rate", &group.rate},
                                                  {"momentum", &optimizer.momentum},
                                                  {"weight_decay", &optimizer.weight_decay},
                                                  {"beta1", &optimizer.beta1},
                                                  {"beta2", &optimizer.beta2},
                                                  {"epsilon", &optimizer.epsilon},
                                                  {"rms_decay", &optimizer.rms_decay},
                                                  {"rms_momentum", &optimizer.rms_momentum}};
  for (const auto& [name, value] : settings) {
    if (name == "kind") {
      const auto kind = parse_optimizer(value.cast<std::string>());
      if (!kind) throw Trouble(kind.error().message);
      optimizer.kind = kind.value();
    } else if (const auto found = numbers.find(name); found != numbers.end()) {
      *found->second = value.cast<double>();
    } else {
      throw Trouble("an optimiser has no setting '" + name + "'");
    }
  }
  return group;
}

Learning learning_of(const Settings& settings) {
  const GroupSettings group = group_of(settings);
  return {.optimizer = group.optimizer, .rate = group.rate};
}

// The settings of every group, from this step on. The rate of the first is the one that is
// recorded.
void set_groups(PythonSession& session, const std::vector<Settings>& groups) {
  std::vector<GroupSettings> own;
  for (const Settings& settings : groups) own.push_back(group_of(settings));
  if (own.empty()) throw Trouble("a step without settings");
  const double rate = own.front().rate;
  session.live().set_rate(rate, std::move(own));
}

bool push(PythonSession& session, uint32_t index, uint32_t samples, uint16_t flags) {
  if (index >= session.layout().tensors().size() || samples == 0)
    throw Trouble("no such tensor, or no samples behind it");
  return session.live().push(index, samples, flags);
}

std::shared_ptr<PythonSession> make_session(const std::string& address, const std::string& token,
                                            WorkerId rank, std::vector<TensorSpec> tensors,
                                            const Settings& optimizer, uint32_t copiers) {
  return std::make_shared<PythonSession>(address, token, rank, std::move(tensors),
                                         learning_of(optimizer), std::min(copiers, kCopiersMax));
}

std::string outcome_of(PythonSession& session) {
  const auto farewell = session.live().farewell();
  if (!farewell) return "running";
  switch (farewell->outcome) {
    case RunOutcome::kCompleted:
      return "completed";
    case RunOutcome::kInterrupted:
      return "interrupted";
    default:
      return "failed";
  }
}

void finish_step(PythonSession& session, bool finished, uint32_t samples) {
  session.live().hold_report(
      {.finished = finished, .samples = samples, .loss = std::numeric_limits<double>::quiet_NaN()});
}

void bind_floats(py::module_& module) {
  py::class_<Floats>(module, "Buffer", py::buffer_protocol(),
                     "Memory of a session: torch.frombuffer and numpy.asarray take it as it is.")
      .def_buffer([](const Floats& floats) {
        return py::buffer_info(floats.values.data(),
                               static_cast<py::ssize_t>(floats.values.size()));
      })
      .def("__len__", [](const Floats& floats) { return floats.values.size(); });
}

void bind_tensor(py::module_& module) {
  py::class_<TensorSpec>(module, "Tensor", "One tensor of the model, as the run knows it.")
      .def(py::init([](std::string name, uint64_t size, bool averaged, double rate, double decay,
                       std::vector<uint64_t> shape, uint32_t group) {
             return TensorSpec{std::move(name),
                               size,
                               averaged ? TensorKind::kAveraged : TensorKind::kTrained,
                               rate,
                               decay,
                               std::move(shape),
                               group};
           }),
           arg("name"), arg("size"), arg("averaged") = false, arg("rate") = 1.0, arg("decay") = 1.0,
           arg("shape") = std::vector<uint64_t>(), arg("group") = 0)
      .def_readonly("name", &TensorSpec::name)
      .def_readonly("size", &TensorSpec::size)
      .def_property_readonly(
          "averaged", [](const TensorSpec& tensor) { return tensor.kind == TensorKind::kAveraged; })
      .def_readonly("rate", &TensorSpec::rate)
      .def_readonly("decay", &TensorSpec::decay)
      .def_readonly("shape", &TensorSpec::shape)
      .def_readonly("group", &TensorSpec::group);
}

std::vector<uint64_t> offsets_of(const PythonSession& session) {
  std::vector<uint64_t> offsets;
  const Layout& layout = session.layout();
  for (size_t i = 0; i < layout.tensors().size(); ++i) offsets.push_back(layout.offset(i));
  return offsets;
}

}  // namespace

void bind_session(py::module_& module) {
  bind_floats(module);
  bind_tensor(module);
  using Self = std::shared_ptr<PythonSession>;
  const py::call_guard<py::gil_scoped_release> alone;
  py::class_<PythonSession, Self>(module, "Session", "A worker's side of a run.")
      .def(py::init(&make_session), py::kw_only(), arg("address"), arg("token"), arg("rank"),
           arg("tensors"), arg("optimizer"), arg("copiers") = 0)
      .def_property_readonly("parameters",
                             [](const Self& self) {
                               return Floats{self, self->live().initial_parameters()};
                             })
      .def_property_readonly("gradient",
                             [](const Self& self) {
                               return Floats{self, self->live().gradient()};
                             })
      .def_property_readonly("average",
                             [](const Self& self) {
                               return Floats{self, self->live().average()};
                             })
      .def_property_readonly("offsets", &offsets_of)
      .def("start", &PythonSession::start)
      .def("next_step", &PythonSession::next_step)
      .def_property_readonly("samples",
                             [](PythonSession& self) {
                               const Batch batch = self.live().batch();
                               return std::pair(batch.first, batch.count);
                             })
      .def(
          "wanted", [](PythonSession& self) { return self.live().wanted(); }, alone)
      .def(
          "tensor_ready",
          [](PythonSession& self, uint32_t index, uint32_t samples) {
            return push(self, index, samples, 0);
          },
          arg("index"), arg("samples"), alone)
      .def(
          "tensor_held",
          [](PythonSession& self, uint32_t index, uint32_t samples) {
            return push(self, index, samples, kHoldFlag);
          },
          arg("index"), arg("samples"), alone)
      .def(
          "tensor_absent",
          [](PythonSession& self, uint32_t index, uint32_t samples) {
            return push(self, index, samples, kNothingFlag);
          },
          arg("index"), arg("samples"), alone)
      .def(
          "tensor_written",
          [](PythonSession& self, uint32_t index) { return push(self, index, 1, kValuesFlag); },
          arg("index"), alone)
      .def(
          "expect_norm",
          [](PythonSession& self, const std::vector<uint32_t>& tensors) {
            self.live().expect_norm(tensors);
          },
          arg("tensors"))
      .def("wait_for_norm", &PythonSession::wait_for_norm)
      .def(
          "release",
          [](PythonSession& self, double scale, bool used) { self.live().release(scale, used); },
          arg("scale"), arg("used"))
      .def(
          "changed_tensors", [](PythonSession& self) { return self.live().changed_tensors(); },
          alone)
      .def("set_groups", &set_groups, arg("groups"))
      .def("pull_ahead", [](PythonSession& self) { self.live().pull_ahead(); })
      .def("finish_step", &finish_step, arg("finished"), arg("samples"))
      .def(
          "report",
          [](PythonSession& self, double loss, uint32_t correct, uint32_t predictions) {
            self.live().amend_report(loss, correct, predictions);
            self.live().send_report();
          },
          arg("loss"), arg("correct"), arg("predictions"))
      .def("ask_to_stop", [](PythonSession& self) { self.live().ask_for_length(0); })
      .def("fetch_average", &PythonSession::fetch_average)
      .def(
          "evaluated",
          [](PythonSession& self, uint64_t version, double loss, double accuracy,
             uint64_t samples) {
            self.live().send_evaluated({version, loss, accuracy, samples});
          },
          arg("version"), arg("loss"), arg("accuracy"), arg("samples"))
      .def("leave", &PythonSession::leave, arg("reason") = "")
      .def_property_readonly("over", [](PythonSession& self) { return self.over(); })
      .def_property_readonly("outcome", &outcome_of)
      .def_property_readonly("reason",
                             [](PythonSession& self) {
                               const auto farewell = self.live().farewell();
                               return farewell ? farewell->reason : std::string();
                             })
      .def_property_readonly("rank", [](PythonSession& self) { return self.live().index(); })
      .def_property_readonly("workers",
                             [](PythonSession& self) { return self.live().welcome().workers; })
      .def_property_readonly("batch",
                             [](PythonSession& self) { return self.live().welcome().batch; })
      .def_property_readonly("seed", [](PythonSession& self) { return self.live().welcome().seed; })
      .def_property_readonly("first_step",
                             [](PythonSession& self) { return self.live().welcome().first_step; })
      .def_property_readonly("steps",
                             [](PythonSession& self) { return self.live().welcome().steps; });
}

}  // namespace drover
