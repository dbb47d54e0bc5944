// Texts: files of a folder, or the lines of one file, as they are or as token ids.
#include "tools/preprocess/media.h"
#include "tools/preprocess/tokens/text_tokens.h"

#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>

#include <algorithm>
#include <cstring>

namespace millrace {

namespace {

// One text per file.
class TextFiles : public Dataset {
 public:
  explicit TextFiles(FileList files) : files_(std::move(files)) {}
  std::int64_t size() const override { return files_.size(); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override { return printable(files_.path(index)); }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    FileBytes& file = FileBytes::of_this_thread();
    if (Status status = file.read(files_.path(index)); !status.ok()) return status;
    std::string text;
    if (Status status = decode_text(file.bytes(), text); !status.ok()) return status;
    sample.set_text("text", text);
    return {};
  }

 private:
  FileList files_;
  Schema schema_{text_field("text")};
};

// One text per line. The file is memory-mapped; only the starts of lines are kept in memory.
class TextLines : public Dataset {
 public:
  explicit TextLines(const std::filesystem::path& path) : file_(path) {
    const char* begin = reinterpret_cast<const char*>(file_.bytes().data());
    for (std::size_t at = 0; at < file_.size();) {
      starts_.push_back(static_cast<std::int64_t>(at));
      const void* end = std::memchr(begin + at, '\n', file_.size() - at);
      at = end == nullptr ? file_.size()
                          : static_cast<std::size_t>(static_cast<const char*>(end) - begin) + 1;
    }
    starts_.push_back(static_cast<std::int64_t>(file_.size()));
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(starts_.size()) - 1; }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override {
    return printable(file_.path()) + " line " + std::to_string(index + 1);
  }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    std::string text;
    if (Status status = decode_text(line(index), text); !status.ok()) return status;
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    sample.set_text("text", text);
    return {};
  }
  std::span<const std::byte> line(std::int64_t index) const {
    auto i = static_cast<std::size_t>(index);
    return file_.bytes().subspan(static_cast<std::size_t>(starts_[i]),
                                 static_cast<std::size_t>(starts_[i + 1] - starts_[i]));
  }

 private:
  MappedFile file_;
  std::vector<std::int64_t> starts_;
  Schema schema_{text_field("text")};
};

class Text : public Medium {
 public:
  const char* name() const override { return "text"; }
  const char* about() const override {
    return "Texts (txt files of a folder, or the lines of one file): as they are, or as token ids. "
           "They must be UTF-8.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess text captions/ --out captions.arrow                     # strings
  preprocess text captions.txt --out lines.arrow                     # one text per line
  preprocess text captions/ --out ids.npy --tokenizer bytes --max-length 256
  preprocess text captions/ --out ids.npy --tokenizer bpe:merges.txt.gz --max-length 77
  preprocess text captions/ --out ids.arrow --tokenizer bytes        # lists, none cut or padded
)";
  }
  void declare(const Options& options) override {
    options.add("input,--input", input_, "folder of txt files, or a file with one text per line")
        .required()
        .type_name("PATH");
    options.add("--tokenizer", options_.tokenizer,
                "write token ids by this tokenizer: bytes (byte plus 1), or bpe:FILE (CLIP's "
                "merges); default: write strings");
    options
        .add("--max-length", options_.max_length,
             "number of ids per text: shorter texts are padded with 0, longer ones cut; "
             "default: lists of any length")
        .positive()
        .default_text("");
    options.flag("--no-cut", options_.no_cut,
                 "treat a text of more than --max-length ids as an error instead of cutting it");
    options.add("--dtype", options_.dtype,
                "integer type of the ids; default: the smallest that fits");
  }
  Job make(const RunOptions&, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_;
  TokenizeOptions options_;
};

Job files_job(const std::string& folder, const std::shared_ptr<Pool>& pool) {
  FileListOptions options = listing(pool);
  options.extensions = {"txt"};
  FileList files(folder, options);
  if (files.size() == 0) {
    throw Error("the folder has no texts (txt)").at(folder).kind(ErrorKind::usage);
  }
  Job job{.what = "texts", .data = TextFiles(files), .source = sources_of(files), .options = {}};
  job.varying_shard_rows = std::max<std::int64_t>(shard_rows_for(files), 1024);
  return job;
}

Job lines_job(const std::string& path) {
  auto lines = std::make_shared<TextLines>(path);
  if (lines->size() == 0) throw Error("has no lines").at(path).kind(ErrorKind::usage);
  auto source = [lines](std::int64_t index) {
    return CacheSource{.name = "line " + std::to_string(index + 1),
                       .bytes = static_cast<std::int64_t>(lines->line(index).size())};
  };
  Job job{.what = "lines", .data = lines, .source = source, .options = {}};
  job.varying_shard_rows = 65536;
  return job;
}

Job Text::make(const RunOptions&, const std::shared_ptr<Pool>& pool) {
  Job job = texts_job(input_, pool);
  if (!options_.tokenizer.empty()) tokenize(job, options_);
  return job;
}

}  // namespace

Job texts_job(const std::string& input, const std::shared_ptr<Pool>& pool) {
  if (!std::filesystem::exists(input)) {
    throw Error("there is no such folder or file").at(input).kind(ErrorKind::usage);
  }
  Job job = std::filesystem::is_directory(input) ? files_job(input, pool) : lines_job(input);
  job.options["medium"] = "text";
  return job;
}

std::unique_ptr<Medium> text_medium() {
  return std::make_unique<Text>();
}

}  // namespace millrace
