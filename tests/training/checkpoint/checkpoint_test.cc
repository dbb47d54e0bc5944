// Checkpoints, compared with Python's torch in both directions.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>

#include <csignal>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace millrace {
namespace {

const std::vector<std::pair<std::string, torch::ScalarType>> types = {
    {"float64", torch::kFloat64},
    {"float32", torch::kFloat32},
    {"float16", torch::kHalf},
    {"bfloat16", torch::kBFloat16},
    {"int64", torch::kInt64},
    {"int32", torch::kInt32},
    {"int16", torch::kInt16},
    {"int8", torch::kInt8},
    {"uint8", torch::kUInt8},
    {"bool", torch::kBool},
    {"uint16", torch::kUInt16},
    {"uint32", torch::kUInt32},
    {"uint64", torch::kUInt64},
    {"complex64", torch::kComplexFloat},
    {"complex128", torch::kComplexDouble},
    {"complex32", torch::kComplexHalf},
    {"float8_e4m3fn", torch::kFloat8_e4m3fn},
    {"float8_e5m2", torch::kFloat8_e5m2},
    {"float8_e4m3fnuz", torch::kFloat8_e4m3fnuz},
    {"float8_e5m2fnuz", torch::kFloat8_e5m2fnuz},
    {"float8_e8m0fnu", torch::kFloat8_e8m0fnu},
};

// 0 1 2 / 3 4 5 in any type.
torch::Tensor six(torch::ScalarType type) {
  return torch::arange(6, torch::kFloat32).reshape({2, 3}).to(type);
}

Value everything() {
  Dict tensors;
  for (const auto& [name, type] : types) tensors.set(name, to_value(six(type)));
  torch::Tensor base = torch::arange(24, torch::kFloat32).reshape({4, 6});
  return Dict{{"none", Value()},
              {"yes", true},
              {"no", false},
              {"small", -7},
              {"large", std::int64_t{1} << 62},
              {"negative", -(std::int64_t{1} << 40)},
              {"real", 0.1},
              {"text", "Mühle ✓"},
              {"bytes", PickleBytes{std::string("\x00\x7f\x80\xff", 4)}},
              {"list", List{{1, "two", 3.5, List{}, Tuple{}, Dict{}}}},
              {"tuple", Tuple{{0.9, 0.999}}},
              {"numbered", Dict{{0, "zero"}, {1, "one"}, {7, "seven"}}},
              {"tensors", tensors},
              {"base", to_value(base)},
              {"column", to_value(base.select(1, 2))},
              {"transposed", to_value(base.t())},
              {"inner", to_value(base.slice(0, 1, 3).slice(1, 1, 6, 2))},
              {"expanded", to_value(torch::ones({1}).expand({3, 5}))},
              {"empty", to_value(torch::empty({0, 4}))},
              {"scalar", to_value(torch::tensor(2.5))},
              {"as_integers", to_value(base.view(torch::kInt32))},
              {"conjugate", to_value(torch::complex(torch::ones({2}), torch::ones({2})).conj())},
              {"parameter", to_value(torch::ones({2}).set_requires_grad(true))}};
}

void expect_equal(const torch::Tensor& a, const torch::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  // Byte for byte: torch has no equal() for every type.
  auto bytes = [](const torch::Tensor& t) { return t.contiguous().flatten().view(torch::kUInt8); };
  EXPECT_TRUE(a.numel() == 0 || torch::equal(bytes(a), bytes(b))) << what;
}

TEST(Checkpoint, GivesBackWhatWasWritten) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", everything());
  const Value got = read_checkpoint(folder / "a.pt");
  const Value want = everything();
  EXPECT_TRUE(got["none"].is_none());
  EXPECT_TRUE(got["yes"].as_bool());
  EXPECT_FALSE(got["no"].as_bool());
  EXPECT_EQ(got["small"].as_int(), -7);
  EXPECT_EQ(got["large"].as_int(), std::int64_t{1} << 62);
  EXPECT_EQ(got["negative"].as_int(), -(std::int64_t{1} << 40));
  EXPECT_EQ(got["real"].as_double(), 0.1);
  EXPECT_EQ(got["text"].as_string(), "Mühle ✓");
  EXPECT_EQ(got["bytes"].as_bytes(), std::string("\x00\x7f\x80\xff", 4));
  EXPECT_EQ(got["list"].as_list().size(), 6U);
  EXPECT_EQ(got["list"].as_list()[1].as_string(), "two");
  EXPECT_TRUE(got["list"].as_list()[4].is<Tuple>());
  EXPECT_EQ(got["numbered"].as_dict().find(7)->as_string(), "seven");
  for (const auto& [name, type] : types) {
    expect_equal(as_tensor(got["tensors"][name]), six(type), name);
  }
  for (const char* name : {"base", "column", "transposed", "inner", "expanded", "empty", "scalar",
                           "as_integers", "parameter"}) {
    expect_equal(as_tensor(got[name]), as_tensor(want[name]).detach(), name);
    EXPECT_EQ(as_tensor(got[name]).strides(), as_tensor(want[name]).strides()) << name;
  }
  std::vector<std::string> order;
  for (const auto& [key, value] : got.as_dict()) order.push_back(key.as_string());
  EXPECT_EQ(order[0], "none");
  EXPECT_EQ(order.back(), "parameter");
}

TEST(Checkpoint, KeepsWhatIsSharedShared) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", everything());
  const Value got = read_checkpoint(folder / "a.pt");
  torch::Tensor base = as_tensor(got["base"]);
  base.zero_();
  for (const char* name : {"column", "transposed", "inner"}) {
    EXPECT_EQ(as_tensor(got[name]).abs().sum().item<float>(), 0) << name;
  }
}

// Reading, converting and writing again keeps storages shared, and no memory is copied.
TEST(Checkpoint, ConvertsTensorsWithoutCopies) {
  torch::Tensor base = torch::arange(24, torch::kFloat32).reshape({4, 6});
  const Value value = to_value(base);
  EXPECT_EQ(value.as_stored_tensor().storage.data(), base.data_ptr());
  EXPECT_EQ(as_tensor(value).storage().unsafeGetStorageImpl(),
            base.storage().unsafeGetStorageImpl());
  const void* memory = base.data_ptr();
  base = torch::Tensor();  // the value keeps it alive
  EXPECT_EQ(as_tensor(value).data_ptr(), memory);
  EXPECT_EQ(as_tensor(value)[3][5].item<float>(), 23);

  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", everything());
  const Value got = read_checkpoint(folder / "a.pt");
  Dict again;
  for (const char* name : {"base", "column", "transposed", "inner"}) {
    again.set(name, to_value(as_tensor(got[name])));
    EXPECT_EQ(as_tensor(got[name]).storage().data(), got[name].as_stored_tensor().storage.data());
  }
  write_checkpoint(folder / "b.pt", again);
  const Value twice = read_checkpoint(folder / "b.pt");
  as_tensor(twice["base"]).zero_();
  for (const char* name : {"column", "transposed", "inner"}) {
    EXPECT_EQ(as_tensor(twice[name]).abs().sum().item<float>(), 0) << name;
  }
}

TEST(Checkpoint, IsReadByPythonWithWeightsOnly) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", everything());
  const std::string seen = run_python(R"(
import sys, torch
v = torch.load(sys.argv[1], weights_only=True)
assert v['none'] is None and v['yes'] is True and v['no'] is False
assert (v['small'], v['large'], v['negative'], v['real']) == (-7, 2**62, -2**40, 0.1)
assert v['text'] == 'Mühle ✓' and v['bytes'] == b'\x00\x7f\x80\xff'
assert v['list'] == [1, 'two', 3.5, [], (), {}] and v['tuple'] == (0.9, 0.999)
assert v['numbered'] == {0: 'zero', 1: 'one', 7: 'seven'}
for name, t in v['tensors'].items():
    assert t.dtype == getattr(torch, name), name
    want = torch.arange(6, dtype=torch.float32).reshape(2, 3).to(t.dtype)
    assert torch.equal(t.view(torch.uint8), want.view(torch.uint8)), name
base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
assert torch.equal(v['base'], base) and torch.equal(v['column'], base[:, 2])
assert torch.equal(v['inner'], base[1:3, 1:6:2]) and v['inner'].stride() == (6, 2)
assert torch.equal(v['transposed'], base.t()) and v['transposed'].stride() == (1, 6)
assert v['transposed'].untyped_storage().data_ptr() == v['base'].untyped_storage().data_ptr()
assert torch.equal(v['expanded'], torch.ones(3, 5)) and v['expanded'].stride() == (0, 0) or v['expanded'].stride() == (0, 1)
assert v['empty'].shape == (0, 4) and v['scalar'].item() == 2.5
assert torch.equal(v['as_integers'], base.view(torch.int32))
assert torch.equal(v['conjugate'], torch.tensor([1-1j, 1-1j]))
assert not v['parameter'].requires_grad
print(len(v), list(v)[0], list(v)[-1], len(v['tensors']))
)",
                                      (folder / "a.pt").string());
  EXPECT_EQ(seen, "23 none parameter 21\n");
}

TEST(Checkpoint, ReadsWhatPythonSaved) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  const std::string sums = run_python(R"(
import sys, torch
from collections import OrderedDict, Counter
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(5, 2))
adam = torch.optim.AdamW([{'params': net[0].parameters()}, {'params': net[2].parameters(), 'lr': 0.5}])
for _ in range(3):
    net[2](net[1](net[0](torch.randn(2, 3, 7, 7)))).sum().backward()
    adam.step()
base = torch.arange(24.).reshape(4, 6)
names = ('float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32 uint64 complex64 complex128 '
         'complex32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu').split()
torch.save({
    'model': net.state_dict(), 'optimizer': adam.state_dict(), 'step': 3, 'lr': 1e-4,
    'ordered': OrderedDict([('b', 1), ('a', OrderedDict(x=[1, (2, 3)]))]), 'counter': Counter([5, 5, 9]),
    'size': base.shape, 'dtype': torch.bfloat16, 'device': torch.device('cpu'), 'bytes': bytes(range(256)),
    'parameter': torch.nn.Parameter(base[1]), 'parameters': list(net[2].parameters()), 'set': {4},
    'big': 2**40, 'negative': -2**63, 'same': [net, 0][1:], 'inf': float('inf'), 'text': 'Mühle ✓',
    'views': [base, base[:, 2], base.t(), base[1:3, 1:6:2]],
    'conjugate': torch.tensor([1+1j, 2+2j]).conj(), 'negated': torch.tensor([1+1j]).conj().imag,
    'tensors': {n: torch.arange(6, dtype=torch.float32).reshape(2, 3).to(getattr(torch, n)) for n in names},
}, sys.argv[1])
for t in net.state_dict().values(): print('%.9g' % t.double().sum().item())
for s in adam.state_dict()['state'].values():
    for k in ('step', 'exp_avg', 'exp_avg_sq'): print('%.9g' % s[k].double().sum().item())
)",
                                      (folder / "p.pt").string());
  const Value got = read_checkpoint(folder / "p.pt");
  std::string ours;
  char line[64];
  auto add_sum = [&](const torch::Tensor& tensor) {
    std::snprintf(line, sizeof line, "%.9g\n", tensor.to(torch::kFloat64).sum().item<double>());
    ours.append(line);
  };
  for (const auto& [name, tensor] : got["model"].as_dict()) add_sum(as_tensor(tensor));
  for (const auto& [number, state] : got["optimizer"]["state"].as_dict()) {
    for (const char* key : {"step", "exp_avg", "exp_avg_sq"}) add_sum(as_tensor(state[key]));
  }
  EXPECT_EQ(ours, sums);
  const auto& groups = got["optimizer"]["param_groups"].as_list();
  EXPECT_EQ(groups[1]["lr"].as_double(), 0.5);
  EXPECT_EQ(groups[1]["params"].as_list()[0].as_int(), 2);
  EXPECT_EQ(groups[0]["betas"].as_list()[1].as_double(), 0.999);
  EXPECT_EQ(got["ordered"]["a"]["x"].as_list()[1].as_list()[1].as_int(), 3);
  EXPECT_EQ(got["counter"].as_dict().find(5)->as_int(), 2);
  EXPECT_EQ(got["size"].as_list()[1].as_int(), 6);
  EXPECT_EQ(got["dtype"].as_string(), "torch.bfloat16");
  EXPECT_EQ(got["device"].as_string(), "cpu");
  EXPECT_EQ(got["bytes"].as_bytes().size(), 256U);
  EXPECT_EQ(static_cast<unsigned char>(got["bytes"].as_bytes()[200]), 200);
  EXPECT_EQ(got["big"].as_int(), std::int64_t{1} << 40);
  EXPECT_EQ(got["negative"].as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(got["inf"].as_double(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(got["text"].as_string(), "Mühle ✓");
  torch::Tensor base = torch::arange(24, torch::kFloat32).reshape({4, 6});
  const auto& views = got["views"].as_list();
  expect_equal(as_tensor(views[1]), base.select(1, 2), "column");
  expect_equal(as_tensor(views[2]), base.t(), "transposed");
  expect_equal(as_tensor(views[3]), base.slice(0, 1, 3).slice(1, 1, 6, 2), "inner");
  expect_equal(as_tensor(got["parameter"]), base[1], "parameter");
  EXPECT_EQ(torch::real(as_tensor(got["conjugate"]).resolve_conj())[1].item<float>(), 2);
  EXPECT_EQ(torch::imag(as_tensor(got["conjugate"]).resolve_conj())[1].item<float>(), -2);
  EXPECT_EQ(as_tensor(got["negated"]).item<float>(), -1);
  for (const auto& [name, type] : types) {
    expect_equal(as_tensor(got["tensors"][name]), six(type), name);
  }
}

TEST(Checkpoint, OfAnotherModelIsRefusedByTheFirstTensorThatDiffers) {
  NamedTensors model{{"a.weight", torch::zeros({2, 3})}, {"a.bias", torch::zeros({2})}};
  auto message = [&](const Value& state) -> std::string {
    try {
      copy_tensors(state, model, "run/a.pt");
      return "copied";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const Value weight = to_value(torch::ones({2, 3})), bias = to_value(torch::ones({2}));
  EXPECT_NE(message(Dict{{"a.weight", weight}}).find("run/a.pt: has no tensor 'a.bias'"),
            std::string::npos);
  EXPECT_NE(message(Dict{{"a.weight", to_value(torch::ones({3, 3}))}, {"a.bias", bias}})
                .find("'a.weight' is [3, 3], the model's is [2, 3]"),
            std::string::npos);
  EXPECT_NE(message(Dict{{"a.weight", weight}, {"a.bias", bias}, {"b", bias}}).find("tensor 'b'"),
            std::string::npos);
  EXPECT_EQ(model[0].second.sum().item<float>(), 0);  // nothing was changed so far
  EXPECT_EQ(message(Dict{{"a.weight", weight}, {"a.bias", bias}}), "copied");
  EXPECT_EQ(model[0].second.sum().item<float>(), 6);
}

TEST(Checkpoint, StaysAsItWasWhenTheDiskIsFull) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", Dict{{"step", 1}});
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100'000;  // every file may have so many bytes
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    write_checkpoint(folder / "a.pt",
                     Dict{{"step", 2}, {"big", to_value(torch::ones({1'000'000}))}});
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find("a.pt: cannot write "), std::string::npos) << message;
  EXPECT_EQ(read_checkpoint(folder / "a.pt")["step"].as_int(), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Checkpoint, SaysWhatCannotBeSaved) {
  TemporaryFolder folder;
  EXPECT_THROW(write_checkpoint(folder / "a.pt", to_value(torch::Tensor())), Error);
  EXPECT_THROW(write_checkpoint(folder / "a.pt", to_value(torch::eye(3).to_sparse())), Error);
  EXPECT_THROW(write_checkpoint(folder / "none" / "a.pt", 1), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace millrace
