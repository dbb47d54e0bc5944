// The FFmpeg libraries alone: opens a file and decodes its first 17 frames with one thread; `scale`
// also scales the centre square to 128 x 128 RGB.
// usage: floor_clips decode|scale THREADS PASSES LIST
#include "floor.h"

#include <cstdio>
#include <cstdlib>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

namespace {

using namespace millrace;

constexpr int frames_wanted = 17, side = 128;

struct Worker {
  bool scale;
  std::vector<std::uint8_t> out =
      std::vector<std::uint8_t>(std::size_t{frames_wanted} * side * side * 3);

  void place(const AVFrame& frame, int number, SwsContext*& scaler) {
    int square = std::min(frame.width, frame.height);
    int left = ((frame.width - square) / 2) & ~1, top = ((frame.height - square) / 2) & ~1;
    scaler =
        sws_getCachedContext(scaler, square, square, static_cast<AVPixelFormat>(frame.format), side,
                             side, AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr);
    const std::uint8_t* from[4] = {
        frame.data[0] + top * frame.linesize[0] + left,
        frame.data[1] == nullptr ? nullptr : frame.data[1] + top / 2 * frame.linesize[1] + left / 2,
        frame.data[2] == nullptr ? nullptr : frame.data[2] + top / 2 * frame.linesize[2] + left / 2,
        nullptr};
    std::uint8_t* to[4] = {out.data() + std::ptrdiff_t{number} * side * side * 3};
    int stride[4] = {side * 3};
    sws_scale(scaler, from, frame.linesize, 0, square, to, stride);
  }

  // Sends the stream's next packet to the decoder, or starts draining at the end of the file.
  static void feed(AVFormatContext* file, int stream, AVCodecContext* decoder, AVPacket* packet) {
    while (av_read_frame(file, packet) >= 0) {
      bool ours = packet->stream_index == stream;
      if (ours) avcodec_send_packet(decoder, packet);
      av_packet_unref(packet);
      if (ours) return;
    }
    avcodec_send_packet(decoder, nullptr);
  }

  void decode(const std::string& path) {
    AVFormatContext* file = nullptr;
    if (avformat_open_input(&file, path.c_str(), nullptr, nullptr) < 0) std::abort();
    const AVCodec* codec = nullptr;
    int stream = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    AVCodecContext* decoder = avcodec_alloc_context3(codec);
    avcodec_parameters_to_context(decoder, file->streams[stream]->codecpar);
    decoder->thread_count = 1;
    avcodec_open2(decoder, codec, nullptr);
    AVPacket* packet = av_packet_alloc();
    AVFrame* frame = av_frame_alloc();
    SwsContext* scaler = nullptr;
    for (int number = 0; number < frames_wanted;) {
      int got = avcodec_receive_frame(decoder, frame);
      if (got == AVERROR(EAGAIN)) {
        feed(file, stream, decoder, packet);
        continue;
      }
      if (got < 0) break;
      if (scale) place(*frame, number, scaler);
      ++number;
    }
    sws_freeContext(scaler);
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&decoder);
    avformat_close_input(&file);
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: floor_clips decode|scale THREADS PASSES LIST\n", stderr);
    return 2;
  }
  av_log_set_level(AV_LOG_QUIET);
  std::string mode = arguments[1];
  std::vector<std::string> files = lines_of(arguments[4]);
  measure_floor({.workload = "clips",
                 .peer = "libav " + mode,
                 .note = mode == "scale" ? "decoding and swscale alone" : "decoding alone",
                 .version = "libavcodec " + std::to_string(avcodec_version() >> 16),
                 .workers = std::atoi(arguments[2]),
                 .passes = std::atoi(arguments[3])},
                static_cast<std::int64_t>(files.size()), [&] {
                  return [&, worker = Worker{.scale = mode == "scale"}](std::int64_t item) mutable {
                    worker.decode(files[static_cast<std::size_t>(item)]);
                  };
                });
}
