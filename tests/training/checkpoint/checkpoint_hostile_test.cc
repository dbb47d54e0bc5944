// Damaged and hostile checkpoints: an Error, never a crash, and never a run of anything.
#include "tests/reference.h"
#include "tests/training/checkpoint/checkpoint_samples.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/checkpoint/checkpoint.h>

#include <string>

namespace millrace {
namespace {

TEST(HostileCheckpoint, TruncatedAnywhereIsAnError) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const std::string whole = bytes_of(folder / "a.pt");
  Random random(1, 0, 0, "truncate");
  for (int i = 0; i < 300; ++i) {
    const auto size =
        static_cast<std::size_t>(random.below(static_cast<std::int64_t>(whole.size())));
    std::ofstream(folder / "b.pt", std::ios::binary) << whole.substr(0, size);
    EXPECT_THROW(read_checkpoint(folder / "b.pt"), Error) << size << " of " << whole.size();
  }
}

// A flipped bit is an error, or is in a byte that holds nothing (padding, dates).
TEST(HostileCheckpoint, FlippedBitsAreAnErrorOrHarmless) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const std::string whole = bytes_of(folder / "a.pt");
  Random random(2, 0, 0, "flip");
  int errors = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = whole;
    const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(whole.size())));
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << random.below(8));
    std::ofstream(folder / "b.pt", std::ios::binary) << damaged;
    try {
      EXPECT_TRUE(is_sample_checkpoint(read_checkpoint(folder / "b.pt"))) << "byte " << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("b.pt: "), std::string::npos);
      ++errors;
    }
  }
  EXPECT_GT(errors, 500);
}

// As above, but with correct checksums, so that the damage reaches the unpickler.
TEST(HostileCheckpoint, DamagedPicklesWithProperChecksumsNeverCrash) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const std::string made = run_python(R"(
import random, sys, zipfile
source, target = sys.argv[1:]
with zipfile.ZipFile(source) as z: records = {i.filename: z.read(i) for i in z.infolist()}
pickle = next(n for n in records if n.endswith('data.pkl'))
random.seed(3)
for i in range(600):
    data = bytearray(records[pickle])
    for _ in range(random.choice([1, 1, 2, 8])):
        what = random.randrange(4)
        at = random.randrange(len(data))
        if what == 0: data[at] = random.randrange(256)
        elif what == 1: del data[at:at + random.randrange(1, 20)]
        elif what == 2: data[at:at] = bytes(random.choice(b'(}])ut.qrhjRQbcNJKMGXaes\x85\x86\x87\x88\x89\x8a') for _ in range(random.randrange(1, 6)))
        else: data[at:at] = data[at - 40:at]
        if not data: data = bytearray(b'.')
    with zipfile.ZipFile(f'{target}/{i}.pt', 'w') as z:
        for name, content in records.items(): z.writestr(name, bytes(data) if name == pickle else content)
print('made')
)",
                                      (folder / "a.pt").string() + " " + folder.path().string());
  ASSERT_EQ(made, "made\n");
  int errors = 0;
  for (int i = 0; i < 600; ++i) {
    try {
      read_checkpoint(folder / (std::to_string(i) + ".pt"));
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 300);
}

// Pickles that Python's pickle.load would run, or that exhaust stack and memory, each in an
// archive.
TEST(HostileCheckpoint, AsksForCodeOrForTheImpossibleAndIsRefused) {
  TemporaryFolder folder;
  const std::string names = run_python(R"py(
import io, os, pickle, struct, sys, zipfile
target = sys.argv[1]
class Run:
    def __init__(self, f, *a): self.f, self.a = f, a
    def __reduce__(self): return self.f, self.a
marker = target + '/marker'
P = lambda v: pickle.dumps(v, 2)
def storage(elements, kind=b'FloatStorage', key=b'0'):
    return b'(X\x07\0\0\0storagectorch\n' + kind + b'\nX' + struct.pack('<I', len(key)) + key + b'X\x03\0\0\0cpuJ' + struct.pack('<i', elements) + b'tQ'
def tensor(sizes, strides, offset=0, elements=4):
    num = lambda n: b'\x8a\x08' + struct.pack('<q', n)
    return (b'\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(' + storage(elements) + num(offset) + b'(' + b''.join(map(num, sizes)) + b't('
            + b''.join(map(num, strides)) + b't\x89ccollections\nOrderedDict\n)RtR.')
bomb = b'\x80\x02](]q\0X\x01\0\0\0aa'  # all in one list; each holds the one before it twice
for i in range(60): bomb += b']q' + bytes([i + 1]) + b'(h' + bytes([i]) + b'h' + bytes([i]) + b'e'
files = {
  'system': P({'model': 1, 'x': Run(os.system, 'touch ' + marker)}),
  'eval': P(Run(eval, "open('%s','w')" % marker)),
  'open': P([Run(open, marker, 'w')]),
  'getattr': P(Run(getattr, 'a', 'upper')),
  'newobj': b'\x80\x02csubprocess\nPopen\n)\x81.',
  'build': b'\x80\x02cbuiltins\nobject\n)R}b.',
  'inst': b'(ios\nsystem\n.', 'obj': b'\x80\x02(cos\nsystem\no.',
  'stack_global': b'\x80\x04\x8c\x02os\x8c\x06system\x93.',
  'empty': b'', 'only_stop': b'.', 'two_left': b'NN.', 'underflow': b't.', 'no_mark': b'Nu.', 'tuple2': b'N\x86.',
  'string': b'X\xff\xff\xff\xffa.', 'global_cut': b'cos', 'memo': b'h\x05.', 'long': b'\x8a\xff' + b'\1' * 255 + b'.',
  'itself': b']q\0h\0a.', 'dict_itself': b'}q\0Nh\0s.', 'deep': b']' * 300000 + b'a' * 299999 + b'.',
  'bomb': bomb + b'e.', 'odd': b'}(Nu.', 'append_none': b'NNa.', 'reduce_none': b'N)R.', 'call_dtype': b'ctorch\nfloat32\n)R.',
  'id_none': b'NQ.', 'id_short': b'X\1\0\0\0a\x85Q.',
  'too_many': tensor([100], [1], 0, 100), 'outside': tensor([5], [1]), 'stride': tensor([2], [4]), 'offset': tensor([1], [1], 4),
  'negative_size': tensor([-1], [1]), 'negative_stride': tensor([2], [-1], 1), 'negative_offset': tensor([1], [1], -1),
  'overflow': tensor([2**40, 2**40], [0, 0]), 'reach': tensor([2**33, 1], [2**33, 1]), 'ranks': tensor([2], [1, 1]),
  'dimensions': tensor([1] * 100, [1] * 100),
  'no_record': b'\x80\x02' + storage(1, key=b'77') + b'.', 'bare_storage': b'\x80\x02' + storage(1) + b'.',
  'parent': b'\x80\x02' + storage(1, key=b'../data.pkl') + b'.',
}
for name, data in files.items():
    with zipfile.ZipFile(f'{target}/{name}.pt', 'w') as z:
        z.writestr('archive/data.pkl', data); z.writestr('archive/data/0', bytes(16))
with zipfile.ZipFile(target + '/deflated.pt', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('archive/data.pkl', P([0] * 1000))
with zipfile.ZipFile(target + '/nothing.pt', 'w') as z: pass
with zipfile.ZipFile(target + '/other.pt', 'w') as z: z.writestr('archive/readme', 'hello')
open(target + '/legacy.pt', 'wb').write(P(0x1950a86a20f9469cfc6c) + P(1001))
open(target + '/text.pt', 'wb').write(b'hello')
print(' '.join(list(files) + 'deflated nothing other legacy text'.split()))
)py",
                                       folder.path().string());
  std::istringstream list(names);
  int refused = 0;
  for (std::string name; list >> name; ++refused) {
    const std::string message = message_of(folder / (name + ".pt"));
    EXPECT_NE(message.find(name + ".pt: "), std::string::npos) << name << ": " << message;
  }
  EXPECT_EQ(refused, 48);
  EXPECT_NE(message_of(folder / "system.pt").find("asks for posix.system"), std::string::npos);
  EXPECT_NE(message_of(folder / "eval.pt").find("asks for builtins.eval"), std::string::npos);
  EXPECT_NE(message_of(folder / "newobj.pt").find("asks for subprocess.Popen"), std::string::npos);
  EXPECT_NE(message_of(folder / "bomb.pt").find("8 million values"), std::string::npos);
  EXPECT_NE(message_of(folder / "itself.pt").find("holds itself"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "marker"));
}

TEST(HostileCheckpoint, IsNoFile) {
  TemporaryFolder folder;
  EXPECT_NE(message_of(folder / "none.pt").find("No such file"), std::string::npos);
  EXPECT_NE(message_of(folder.path()).find("is not a file"), std::string::npos);
}

}  // namespace
}  // namespace millrace
