// Small media of every kind, made by Millrace's own writers: quick, and the same each time. Whether
// they are decoded rightly is tested elsewhere, against other programs.
#pragma once

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/mesh/mesh_write.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {

inline void write_file(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_picture(const std::filesystem::path& path, int which) {
  std::filesystem::create_directories(path.parent_path());
  const std::int64_t h = 24 + which % 5, w = 40 - which % 7;
  Array pixels = Array::empty(DType::uint8, {h, w, 3});
  auto values = pixels.as<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * static_cast<std::size_t>(which * 2 + 3) >> 3);
  }
  std::vector<std::byte> file;
  ASSERT_TRUE(encode_png(pixels, {}, file).ok());
  write_file(path, {reinterpret_cast<const char*>(file.data()), file.size()});
}

inline void write_clip(const std::filesystem::path& path, int which, int frames = 6) {
  std::filesystem::create_directories(path.parent_path());
  const int h = 20, w = 28;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(frames * h * w * 3));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    auto frame = i / static_cast<std::size_t>(h * w * 3);
    pixels[i] = static_cast<std::uint8_t>(
        (i * static_cast<std::size_t>(which + 1) / 8 + frame * 40) & 0xE0);
  }
  ASSERT_TRUE(write_gif(path, pixels, {.frames = frames, .height = h, .width = w}).ok());
}

inline void write_sound(const std::filesystem::path& path, int which, std::int64_t samples = 3000) {
  std::filesystem::create_directories(path.parent_path());
  std::vector<float> sound(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < sound.size(); ++i) {
    sound[i] = 0.5F * std::sin(static_cast<float>(i) * 0.01F * static_cast<float>(which + 1));
  }
  ASSERT_TRUE(write_wav(path, std::span<const float>(sound), 1, 16'000).ok());
}

// A fan of triangles; the more the higher `which`.
inline void write_mesh(const std::filesystem::path& path, int which) {
  Mesh mesh;
  mesh.vertices.push_back({0, 0, 0});
  for (int i = 0; i < which + 3; ++i) {
    mesh.vertices.push_back({std::cos(static_cast<float>(i)), std::sin(static_cast<float>(i)),
                             0.1F * static_cast<float>(i)});
    if (i > 0) mesh.faces.push_back({0, i, i + 1});
  }
  write_file(path, encode_obj(mesh));
}

}  // namespace millrace
