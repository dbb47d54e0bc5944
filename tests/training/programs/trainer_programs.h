// Describes the training programs for tests that run on all of them, each with a tiny model that
// has all features.
#pragma once

#include "tests/training/programs/child_program.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace millrace {

inline void make_clips(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    const GifFrames shape{.frames = 2 + i % 6, .height = 18, .width = 20};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.frames * 18 * 20 * 3));
    Random random(1, 0, i, "clip");
    for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
    ASSERT_TRUE(write_gif(folder / (std::to_string(i) + ".gif"), pixels, shape).ok());
  }
}

// Files of noise, each with a caption file.
inline void make_sounds(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    std::vector<float> sound(static_cast<std::size_t>(200 + 40 * (i % 5)));
    Random random(1, 0, i, "sound");
    for (float& value : sound) value = static_cast<float>(random.uniform() - 0.5);
    const std::string stem = std::to_string(i);
    ASSERT_TRUE(write_wav(folder / (stem + ".wav"), std::span<const float>(sound), 1, 8'000).ok());
    std::ofstream(folder / (stem + ".txt")) << "noise " << std::string(i % 7, 'a' + i % 26) << i;
  }
}

struct TrainerProgram {
  std::string name, path;
  std::vector<std::string> model;  // flags with their values
  // Additional flags with which every parameter has a gradient. Otherwise Adam amplifies rounding
  // errors to full steps, and runs with different orders of summation diverge.
  std::vector<std::string> steady{};
  std::string results_every = "--save-results-every", checkpoint_every = "--checkpoint-every";
  std::string loss = "loss", valid_loss = "valid_ema_loss", average = "ema";
  std::function<void(const std::filesystem::path& folder, int count)> make_media = make_pictures;
  std::string checkpoint_stem = "checkpoint.";
  // File name of the checkpoint after `steps` steps, in a run that writes one every `every` steps.
  std::function<std::string(int steps, int every)> checkpoint = [](int steps, int /*every*/) {
    return "checkpoint." + std::to_string(steps) + ".pt";
  };
  std::vector<std::string> samples{"0.png", "0.ema.png"};  // files of step 0
  std::string checkpoints_folder_flag{};  // of a program with a separate checkpoints folder
  // Flags of a model that does not match a checkpoint, and the parts of the error message: the
  // first tensor that does not fit, and its shape.
  std::vector<std::string> other_model{"--codebook-size", "32"};
  std::string other_tensor = "'quantizer", other_shape = "is [4";
  // Flags for files that make_media() has written beside the folder, e.g. a VAE.
  std::function<std::vector<std::string>(const std::filesystem::path& media)> beside =
      [](const std::filesystem::path& /*media*/) { return std::vector<std::string>(); };
  // The ranks share one batch: r ranks with batch size b equal one process with batch size r * b.
  bool one_batch = false;
  int files = 22;  // number of files in tests with ranks

  // The minimal command line. Results and checkpoints go to the same folder.
  std::vector<std::string> arguments(const std::filesystem::path& media,
                                     const std::filesystem::path& results, int steps) const {
    std::vector<std::string> all{media.string(), "--results-folder", results.string(),
                                 "--num-train-steps", std::to_string(steps)};
    all.insert(all.end(), model.begin(), model.end());
    if (!checkpoints_folder_flag.empty()) {
      all.insert(all.end(), {checkpoints_folder_flag, results.string()});
    }
    for (const std::string& flag : beside(media)) all.push_back(flag);
    for (const char* flag : {"--threads", "--workers"}) all.insert(all.end(), {flag, "1"});
    return all;
  }
};

// Clips with a caption each, and beside the folder a VAE that encodes them.
inline void make_captioned_clips(const std::filesystem::path& folder, int count) {
  make_clips(folder, count);
  for (int i = 0; i < count; ++i) {
    std::ofstream(folder / (std::to_string(i) + ".txt")) << "clip " << std::string(i % 4, 'x') << i;
  }
  torch::manual_seed(1);
  const NuwaVqgan vae(NuwaVqganConfig{.dim = 4,
                                      .image_size = 8,
                                      .channels = 1,
                                      .num_layers = 1,
                                      .num_resnet_blocks = {0},
                                      .use_attn = {false},
                                      .resnet_groups = 2,
                                      .use_vgg_and_gan = false,
                                      .vq = {.codebook_size = 8, .codebook_dim = 4}});
  Dict saved;
  saved.set("model", to_value(state_tensors(*vae)));
  saved.set("config", vae->config_json());
  write_checkpoint(folder.string() + ".vae.pt", Value(std::move(saved)));
}

inline void PrintTo(const TrainerProgram& program, std::ostream* out) {
  *out << program.name;
}

inline TrainerProgram vqgan_program() {
  return {.name = "train_vqgan",
          .path = MILLRACE_TRAIN_VQGAN,
          .model = {"--image-size", "16", "--dim", "16", "--layers", "1", "--discr-layers", "1",
                    "--codebook-size", "16", "--encdec-num-resnet-blocks", "0"},
          .steady = {"--dim", "32", "--adversarial-weight", "1"}};
}

// Bipyramids (a ring of triangles around two poles) with different numbers of faces.
inline void make_meshes(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    Random random(1, 0, i, "mesh");
    const int corners = 3 + i % 4;
    std::string text = "v 0 0 0.9\nv 0 0 -0.8\n";
    for (int k = 0; k < corners; ++k) {
      text += c10::str("v ", 0.1 * k + 0.2 * random.uniform(), " ", k % 2 == 0 ? 0.3 : -0.4, " ",
                       0.05 * k, "\n");
      text += c10::str("f 1 ", 3 + k, " ", 3 + (k + 1) % corners, "\nf 2 ", 3 + (k + 1) % corners,
                       " ", 3 + k, "\n");
    }
    std::ofstream(folder / (std::to_string(i) + ".obj")) << text;
  }
}

// The same meshes, and beside the folder an autoencoder that encodes them.
inline void make_encoded_meshes(const std::filesystem::path& folder, int count) {
  make_meshes(folder, count);
  torch::manual_seed(1);
  const MeshAutoencoder autoencoder(MeshAutoencoderConfig{.num_discrete_coors = 16,
                                                          .dim_coor_embed = 4,
                                                          .num_discrete_area = 8,
                                                          .dim_area_embed = 2,
                                                          .num_discrete_normals = 8,
                                                          .dim_normal_embed = 4,
                                                          .num_discrete_angle = 8,
                                                          .dim_angle_embed = 2,
                                                          .encoder_dims_through_depth = {8, 12},
                                                          .decoder_dims_through_depth = {8},
                                                          .dim_codebook = 8,
                                                          .codebook_size = 16});
  Dict saved;
  saved.set("model", to_value(state_tensors(*autoencoder)));
  saved.set("config", autoencoder->config().to_json());
  write_checkpoint(folder.string() + ".autoencoder.pt", Value(std::move(saved)));
}

inline TrainerProgram mesh_transformer_program() {
  return {
      .name = "train_mesh_transformer",
      .path = MILLRACE_TRAIN_MESH_TRANSFORMER,
      .model = {"--dim", "16", "--max-seq-len", "120", "--attn-depth", "1", "--attn-dim-head", "8",
                "--attn-heads", "2", "--fine-attn-depth", "1", "--learning-rate", "1e-3",
                "--warmup-steps", "3"},
      .results_every = "--val-every",
      .valid_loss = "valid_loss",
      .average = "",
      .make_media = make_encoded_meshes,
      .checkpoint_stem = "mesh-transformer.ckpt.",
      .checkpoint =
          [](int steps, int every) {
            return "mesh-transformer.ckpt." + std::to_string((steps + every - 1) / every) + ".pt";
          },
      .samples = {"sampled.6.png", "sampled.6.7.obj"},  // files of the last step
      .checkpoints_folder_flag = "--checkpoint-folder",
      .other_model = {"--dim", "24"},
      .other_tensor = "'sos_token",
      .other_shape = "is [16",
      .beside =
          [](const std::filesystem::path& media) {
            return std::vector<std::string>{"--autoencoder", media.string() + ".autoencoder.pt"};
          }};
}

inline TrainerProgram mesh_autoencoder_program() {
  return {.name = "train_mesh_autoencoder",
          .path = MILLRACE_TRAIN_MESH_AUTOENCODER,
          .model = {"--num-discrete-coors",
                    "16",
                    "--dim-coor-embed",
                    "4",
                    "--dim-area-embed",
                    "1",
                    "--dim-normal-embed",
                    "2",
                    "--dim-angle-embed",
                    "2",
                    "--encoder-dims-through-depth",
                    "8",
                    "--decoder-dims-through-depth",
                    "8,6",
                    "--dim-codebook",
                    "8",
                    "--codebook-size",
                    "16",
                    "--num-quantizers",
                    "3",
                    "--attn-encoder-depth",
                    "1",
                    "--local-attn-dim-head",
                    "4",
                    "--local-attn-heads",
                    "1",
                    "--local-attn-window-size",
                    "4",
                    "--linear-attn-dim-head",
                    "2",
                    "--linear-attn-heads",
                    "1",
                    "--learning-rate",
                    "1e-3",
                    "--warmup-steps",
                    "3",
                    "--faces-at-once",
                    "20",
                    "--ema-update-after-step",
                    "2",
                    "--ema-update-every",
                    "1"},
          .results_every = "--val-every",
          .loss = "total_loss",
          .valid_loss = "valid_ema_recon_loss",
          .average = "ema_model",
          .make_media = make_meshes,
          .checkpoint_stem = "mesh-autoencoder.ckpt.",
          .checkpoint =
              [](int steps, int every) {
                return c10::str("mesh-autoencoder.ckpt.", (steps + every - 1) / every, ".pt");
              },
          .samples = {"reconstructed.0.png", "reconstructed.0.ema.png"},
          .checkpoints_folder_flag = "--checkpoint-folder"};
}

inline TrainerProgram video_tokenizer_program() {
  return {.name = "train_video_tokenizer",
          .path = MILLRACE_TRAIN_VIDEO_TOKENIZER,
          .model = {"--image-size",
                    "8",
                    "--num-frames",
                    "5",
                    "--layers",
                    "compress_space:6,residual,compress_time",
                    "--codebook-size",
                    "16",
                    "--init-dim",
                    "4",
                    "--input-conv-kernel-size",
                    "3",
                    "--learning-rate",
                    "1e-3",
                    "--warmup-steps",
                    "3",
                    "--ema-update-after-step",
                    "2",
                    "--ema-update-every",
                    "1",
                    "--discr-dim",
                    "1",
                    "--discr-max-dim",
                    "4",
                    "--discr-linear-attn-dim-head",
                    "2",
                    "--discr-linear-attn-heads",
                    "1",
                    "--multiscale-scales",
                    "2",
                    "--multiscale-dim",
                    "1",
                    "--multiscale-max-dim",
                    "4",
                    "--discr-start-after-step",
                    "2"},
          .steady = {"--use-gan", "false"},
          .results_every = "--validate-every-step",
          .checkpoint_every = "--checkpoint-every-step",
          .loss = "total_loss",
          .valid_loss = "valid_ema_recon_loss",
          .average = "ema_model",
          .make_media = make_clips,
          .checkpoint =
              [](int steps, int every) {
                const int number = (steps - 1 + every - 1) / every;
                return "checkpoint." + std::to_string(number) + ".pt";
              },
          .samples = {"sampled.0.gif"},
          .checkpoints_folder_flag = "--checkpoints-folder"};
}

inline TrainerProgram mulan_program() {
  return {
      .name = "train_mulan",
      .path = MILLRACE_TRAIN_MULAN,
      .model = {"--sample-rate", "8000", "--data-max-length", "220", "--audio-dim", "8",
                "--audio-depth", "2", "--audio-heads", "2", "--audio-dim-head", "4", "--patch-size",
                "8", "--spec-n-fft", "32", "--spec-aug-freq-mask", "6", "--spec-aug-time-mask", "6",
                "--text-dim", "8", "--text-depth", "2", "--text-heads", "2", "--text-dim-head", "4",
                "--dim-latent", "6", "--hierarchical-contrastive-loss", "true",
                // Otherwise Adam moves parameters whose gradient is only rounding error, e.g. the
                // bias of all logits.
                "--eps", "1e-3"},
      .valid_loss = "valid_loss",
      .average = "",
      .make_media = make_sounds,
      .samples = {"retrieval.0.txt", "mulan.0.pt"},
      .other_model = {"--dim-latent", "5"},
      .other_tensor = "'text_to_latents",
      .other_shape = "is [",
      .one_batch = true};
}

inline TrainerProgram nuwa_vae_program() {
  return {.name = "train_nuwa_vae",
          .path = MILLRACE_TRAIN_NUWA_VAE,
          .model = {"--image-size",
                    "8",
                    "--dim",
                    "16",
                    "--num-layers",
                    "1",
                    "--attn-dim-head",
                    "4",
                    "--attn-heads",
                    "2",
                    "--vq-codebook-size",
                    "16",
                    "--vq-codebook-dim",
                    "8",
                    "--num-resnet-blocks",
                    "0",
                    "--ema-update-after-step",
                    "2",
                    "--ema-update-every",
                    "1"},
          .make_media = make_clips,
          .other_model = {"--vq-codebook-size", "32"},
          .other_tensor = "'vq._codebook",
          .other_shape = "is [1"};
}

inline TrainerProgram nuwa_program() {
  return {.name = "train_nuwa",
          .path = MILLRACE_TRAIN_NUWA,
          .model = {"--dim", "12", "--max-video-frames", "2", "--text-max-seq-len", "8",
                    "--text-enc-depth", "1", "--text-enc-heads", "2", "--text-enc-dim-head", "4",
                    "--dec-depth", "1", "--dec-heads", "2", "--dec-dim-head", "4"},
          .valid_loss = "valid_loss",
          .average = "model",
          .make_media = make_captioned_clips,
          .samples = {"0.png", "0.gif"},
          .other_model = {"--dim", "20"},
          .other_tensor = "'video_bos'",
          .other_shape = "is [12]",
          .beside = [](const std::filesystem::path& media) {
            return std::vector<std::string>{"--vae", media.string() + ".vae.pt"};
          }};
}

}  // namespace millrace
