// Reads the trackers' files back with TensorBoard's own reader and as JSON.
#include "tests/reference.h"

#include <millrace/training/tracking/tracker.h>

#include <cmath>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

Array gradient_picture() {
  Array picture = Array::empty(DType::uint8, {4, 6, 3});
  std::uint8_t value = 0;
  for (std::uint8_t& pixel : picture.as<std::uint8_t>()) pixel = value++;
  return picture;
}

TEST(Tracker, TensorBoardReadsWhatWasWritten) {
  TemporaryFolder folder;
  {
    TensorBoardTracker tracker(folder.path());
    tracker.hyper_parameters({{"lr", "0.0003"}, {"dim", "64"}});
    for (int step = 0; step < 300; ++step) {
      tracker.scalars(step, {{"loss", 1.0 / (step + 1)}, {"discr_loss", -step * 0.5}});
    }
    tracker.picture(7, "reconstructions", gradient_picture());
    tracker.text(3, "note", "Mühle");
  }
  const std::string seen = run_python(R"(
import io, sys
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util
log = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0, 'images': 0, 'tensors': 0})
log.Reload()
tags = log.Tags()
print(sorted(tags['scalars']), tags['images'], sorted(t for t in tags['tensors'] if not t.startswith('_')))
loss = log.Scalars('loss')
assert [e.step for e in loss] == list(range(300))
assert all(abs(e.value - 1 / (e.step + 1)) < 1e-7 for e in loss)
assert log.Scalars('discr_loss')[9].value == -4.5
image, = log.Images('reconstructions')
picture = Image.open(io.BytesIO(image.encoded_image_string))
print(image.step, image.width, image.height, picture.size, list(picture.tobytes()) == list(range(72)))
note, = log.Tensors('note')
print(note.step, tensor_util.make_ndarray(note.tensor_proto)[0].decode())
info = plugin_data_pb2.HParamsPluginData.FromString(log.SummaryMetadata('_hparams_/session_start_info').plugin_data.content)
print({k: v.string_value for k, v in sorted(info.session_start_info.hparams.items())})
)",
                                      folder.path().string());
  EXPECT_EQ(seen,
            "['discr_loss', 'loss'] ['reconstructions'] ['note', 'options']\n"
            "7 6 4 (6, 4) True\n"
            "3 Mühle\n"
            "{'dim': '64', 'lr': '0.0003'}\n");
}

TEST(Tracker, TensorBoardForgetsWhatAResumedRunDoesAgain) {
  TemporaryFolder folder;
  {
    TensorBoardTracker tracker(folder.path());
    for (int step = 0; step < 10; ++step) tracker.scalars(step, {{"loss", 1}});
  }
  // The second run's file must come after the first in name order.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::filesystem::rename(entry.path(), folder / "events.out.tfevents.0000000001.first");
  }
  {
    TensorBoardTracker tracker(folder.path(), 6);
    for (int step = 6; step < 12; ++step) tracker.scalars(step, {{"loss", 2}});
  }
  const std::string seen = run_python(R"(
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
log = EventAccumulator(sys.argv[1])
log.Reload()
print([(e.step, e.value) for e in log.Scalars('loss')])
)",
                                      folder.path().string());
  std::ostringstream want;
  for (int step = 0; step < 12; ++step) {
    want << (step == 0 ? "[" : ", ") << "(" << step << (step < 6 ? ", 1.0)" : ", 2.0)");
  }
  EXPECT_EQ(seen, want.str() + "]\n");
}

TEST(Tracker, JsonLinesReadBackToTheBitAndResume) {
  TemporaryFolder folder;
  const double odd = 0.1F + 1e-17;
  {
    JsonLinesTracker tracker(folder / "m.jsonl");
    for (int step = 0; step < 5; ++step) tracker.scalars(step, {{"loss", odd * step}});
    tracker.scalars(5, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  }
  std::ofstream(folder / "m.jsonl", std::ios::app) << "{\"step\": 6, \"lo";  // killed here
  {
    JsonLinesTracker tracker(folder / "m.jsonl", 3);
    tracker.scalars(3, {{"loss", 7}});
  }
  std::ifstream in(folder / "m.jsonl");
  std::vector<double> losses;
  for (std::string line; std::getline(in, line);) {
    losses.push_back(nlohmann::json::parse(line)["loss"].get<double>());
  }
  EXPECT_EQ(losses, (std::vector<double>{0, odd, odd * 2, 7}));
}

}  // namespace
}  // namespace millrace
