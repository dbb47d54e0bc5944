#include "pickle_writer.h"
#include "unpickler.h"
#include "zip_reader.h"

#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>

#include <exception>

#include <c10/util/StringUtil.h>
#include <caffe2/serialize/inline_container.h>

namespace millrace {

namespace {

constexpr std::size_t max_pickle = std::size_t{256} << 20;

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Value& value) {
  const Pickle pickle = PickleWriter::write(value);
  DurableFile file(path);
  std::exception_ptr failure;
  {
    // The writer must never see a failure: its destructor would write again and throw.
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, std::size_t size) {
      try {
        if (!failure) file.write({static_cast<const std::byte*>(data), size});
      } catch (...) {
        failure = std::current_exception();
      }
      return size;
    });
    archive.writeRecord("data.pkl", pickle.bytes.data(), pickle.bytes.size());
    archive.writeRecord("byteorder", "little", 6);
    for (std::size_t i = 0; i < pickle.storages.size() && !failure; ++i) {
      const torch::Storage& storage = pickle.storages[i];
      archive.writeRecord(c10::str("data/", i), storage.data(), storage.nbytes());
    }
    archive.writeEndOfFile();
  }
  if (failure) std::rethrow_exception(failure);
  file.commit();
}

Value read_checkpoint(const std::filesystem::path& path) {
  const ZipReader archive(path);
  try {
    if (!archive.has("data.pkl")) throw Error("is no checkpoint: it has no data.pkl");
    if (archive.has("byteorder") && archive.read("byteorder") != "little") {
      throw Error("was written on a big-endian machine");
    }
    if (archive.has("constants.pkl")) {
      throw Error("is a TorchScript program, not a checkpoint")
          .hint("Save the state in Python: torch.save(model.state_dict(), path)");
    }
    if (archive.size("data.pkl") > max_pickle) throw Error("has a pickle of more than 256 MB");
    const std::string pickle = archive.read("data.pkl");
    return Unpickler(pickle, archive).read();
  } catch (Error& error) {
    throw error.at(path.string()).stage("checkpoint");
  } catch (const c10::Error& error) {  // of LibTorch: out of memory
    throw Error(error.what_without_backtrace()).at(path.string()).stage("checkpoint");
  }
}

Value read_pickle(const std::string& pickle) {
  return Unpickler(pickle).read();
}

void copy_tensors(const Value& from, const NamedTensors& to, const std::string& source) {
  auto fail = [&](const std::string& why) {
    throw Error(why).at(source).hint("Give the configuration that the checkpoint was made with");
  };
  const Dict& state = from.as_dict();
  Dict wanted;
  for (const auto& [name, tensor] : to) {
    const Value* found = state.find(name);
    if (found == nullptr) fail(c10::str("has no tensor '", name, "', which the model needs"));
    const torch::Tensor& there = found->as_tensor();
    if (there.sizes() != tensor.sizes()) {
      fail(c10::str("'", name, "' is ", there.sizes(), ", the model's is ", tensor.sizes()));
    }
    wanted.set(name, Value());
  }
  for (const auto& [name, value] : state) {
    if (!wanted.contains(name.as_string())) {
      fail(c10::str("has a tensor '", name.as_string(), "', which the model does not have"));
    }
  }
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : to) tensor.copy_(state.at(name).as_tensor());
}

}  // namespace millrace
