// Zip archives that lie: about sizes, offsets, names and the number of their records.
#include "tests/reference.h"
#include "tests/training/checkpoint/checkpoint_samples.h"

#include <map>

#include <sys/stat.h>

namespace millrace {
namespace {

// Each archive is made of `records`: (name, content, fields of the directory that lie).
constexpr const char* make_archives = R"py(
import pickle, struct, sys, zlib
target = sys.argv[1]
P = pickle.dumps({'step': 1}, 2)
def entry(name, content, at, **lie):
    f = dict(method=0, crc=zlib.crc32(content), packed=len(content), plain=len(content), header=at, extra=b'', flags=0)
    f.update(lie)
    return struct.pack('<IHHHHIIIIHHHHHII', 0x02014b50, 20, 20, f['flags'], f['method'], 0, f['crc'], f['packed'], f['plain'],
                       len(name), len(f['extra']), 0, 0, 0, 0, f['header']) + name + f['extra']
def archive(file, records, count=None, size=None, offset=None, tail=b'', end64=None):
    out, directory = b'', b''
    for name, content, lie in records:
        directory += entry(name, content, len(out), **lie)
        out += struct.pack('<IHHHIIIIHH', 0x04034b50, 20, 0, 0, 0, 0, 0, 0, len(name), 0) + name + content
    start = len(out)
    out += directory
    if end64 is not None: out += end64(len(out), len(records), len(directory), start)
    n = len(records) if count is None else count
    out += struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, n & 0xffff, n & 0xffff, len(directory) if size is None else size,
                       start if offset is None else offset, len(tail)) + tail
    open(f'{target}/{file}.pt', 'wb').write(out)
def zip64(at=None, count=None, size=None, offset=None, signature=0x06064b50):
    def make(here, n, bytes, start):
        pick = lambda given, real: real if given is None else given
        return (struct.pack('<IQHHIIQQQQ', signature, 44, 45, 45, 0, 0, pick(count, n), pick(count, n), pick(size, bytes), pick(offset, start))
                + struct.pack('<IIQI', 0x07064b50, 0, pick(at, here), 1))
    return make
good = [(b'archive/data.pkl', P, {})]
big = 2**64 - 1
archive('good', good)
archive('good64', good, end64=zip64())
archive('comment', good, tail=b'hello')
archive('twice', good + good)
archive('absolute', [(b'/data.pkl', P, {})])
archive('absolute_folder', [(b'/etc/data.pkl', P, {})])
archive('parent', [(b'../data.pkl', P, {})])
archive('here', [(b'./data.pkl', P, {})])
archive('no_folder', [(b'data.pkl', P, {})])
archive('two_folders', good + [(b'other/data/0', b'x', {})])
archive('empty_name', [(b'', P, {})])
archive('deflated', [(b'archive/data.pkl', P, {'method': 8})])
archive('packed', [(b'archive/data.pkl', P, {'packed': 3})])
archive('too_large', [(b'archive/data.pkl', P, {'packed': 10**9, 'plain': 10**9})])
archive('bomb', good + [(b'archive/data/%d' % i, b'', {'packed': 600, 'plain': 600, 'header': 0}) for i in range(1000)])
archive('claims_zip64', [(b'archive/data.pkl', P, {'packed': 2**32 - 1, 'plain': 2**32 - 1, 'extra': struct.pack('<HHQQ', 1, 16, big, big)})])
archive('short_zip64', [(b'archive/data.pkl', P, {'packed': 2**32 - 1, 'plain': 2**32 - 1, 'extra': struct.pack('<HHQ', 1, 8, 5)})])
archive('long_extra', [(b'archive/data.pkl', P, {'plain': 2**32 - 1, 'packed': 2**32 - 1, 'extra': struct.pack('<HH', 1, 65535)})])
archive('header_zip64', [(b'archive/data.pkl', P, {'header': 2**32 - 1, 'extra': struct.pack('<HHQ', 1, 8, big - 8)})])
archive('header_outside', [(b'archive/data.pkl', P, {'header': 10**6})])
archive('header_inside', [(b'archive/data.pkl', P, {'header': 7})])
archive('wrong_name', [(b'archive/data/0', b'x' * 16, {}), (b'archive/data.pkl', P, {'header': 0})])
archive('checksum', [(b'archive/data.pkl', P, {'crc': 1})])
archive('count', good, count=60000)
archive('size', good, size=2**32 - 1)
archive('offset', good, offset=2**32 - 1)
archive('no_entries', [], count=0)
archive('end64_outside', good, end64=zip64(at=big - 10))
archive('end64_signature', good, end64=zip64(signature=7))
archive('end64_count', good, end64=zip64(count=big))
archive('end64_size', good, end64=zip64(size=big))
archive('end64_offset', good, end64=zip64(offset=big - 40))
archive('big_endian', good + [(b'archive/byteorder', b'big', {})])
archive('script', good + [(b'archive/constants.pkl', P, {})])
open(target + '/end_only.pt', 'wb').write(b'PK\x05\x06' + bytes(18))
open(target + '/end_cut.pt', 'wb').write(b'PK\x05\x06' + bytes(17))
open(target + '/nothing.pt', 'wb').write(b'')
open(target + '/one.pt', 'wb').write(b'P')
)py";

TEST(HostileZip, IsRefusedWithAReason) {
  TemporaryFolder folder;
  run_python(make_archives, folder.path().string());
  for (const char* name : {"good", "good64", "comment"}) {
    EXPECT_EQ(message_of(folder / (std::string(name) + ".pt")), "read") << name;
  }
  const std::map<std::string, std::string> wanted = {
      {"twice", "has the record archive/data.pkl twice"},
      {"absolute", "has a record outside its folder, /data.pkl"},
      {"absolute_folder", "has a record outside its folder, /etc/data.pkl"},
      {"parent", "has a record outside its folder, ../data.pkl"},
      {"here", "has a record outside its folder, ./data.pkl"},
      {"no_folder", "has a record outside its folder, data.pkl"},
      {"two_folders", "has records in several folders"},
      {"empty_name", "has a record outside its folder, "},
      {"deflated", "has a compressed record, archive/data.pkl"},
      {"packed", "has a compressed record, archive/data.pkl"},
      {"too_large", "claims more than it holds"},
      {"bomb", "claims more than it holds"},
      {"claims_zip64", "claims more than it holds"},
      {"short_zip64", "has a damaged directory"},
      {"long_extra", "claims more than it holds"},
      {"header_zip64", "is cut short"},
      {"header_outside", "is cut short"},
      {"header_inside", "has a damaged record, data.pkl"},
      {"wrong_name", "has a damaged record, data.pkl"},
      {"checksum", "is damaged: the checksum of data.pkl does not fit"},
      {"count", "has a damaged directory"},
      {"size", "has a damaged directory"},
      {"offset", "is cut short"},
      {"no_entries", "holds nothing"},
      {"end64_outside", "is cut short"},
      {"end64_signature", "has a damaged directory"},
      {"end64_count", "has a damaged directory"},
      {"end64_size", "has a damaged directory"},
      {"end64_offset", "is cut short"},
      {"big_endian", "was written on a big-endian machine"},
      {"script", "is a TorchScript program, not a checkpoint"},
      {"end_only", "holds nothing"},
      {"end_cut", "is not a checkpoint, or is cut short"},
      {"nothing", "is not a checkpoint, or is cut short"},
      {"one", "is not a checkpoint, or is cut short"},
  };
  for (const auto& [name, reason] : wanted) {
    const std::string message = message_of(folder / (name + ".pt"));
    EXPECT_NE(message.find(name + ".pt: checkpoint: " + reason), std::string::npos)
        << name << ": " << message;
  }
}

// To open a FIFO for reading would wait for a writer that never comes.
TEST(HostileZip, FifoIsRefusedAtOnce) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "a.pt").c_str(), 0600), 0);
  EXPECT_NE(message_of(folder / "a.pt").find("is not a file"), std::string::npos);
}

}  // namespace
}  // namespace millrace
