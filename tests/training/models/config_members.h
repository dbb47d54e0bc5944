// The members of every model configuration by name, so that a test can visit each of them. A test
// compares these lists with the headers.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>
#include <millrace/training/models/mulan/mulan_config.h>
#include <millrace/training/models/nuwa/nuwa_config.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>
#include <millrace/training/models/vqgan/vqgan_config.h>

namespace millrace::config_round_trip {

template <class T>
struct Members;

// MEMBERS(type, a, b, ...): visits the members by name.
#define PARENTHESES ()
#define EXPAND(...) EXPAND3(EXPAND3(EXPAND3(EXPAND3(__VA_ARGS__))))
#define EXPAND3(...) EXPAND2(EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__))))
#define EXPAND2(...) EXPAND1(EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__))))
#define EXPAND1(...) __VA_ARGS__
#define EACH(...) __VA_OPT__(EXPAND(EACH_NEXT(__VA_ARGS__)))
#define EACH_NEXT(member, ...) \
  visit(#member, c.member);    \
  __VA_OPT__(EACH_AGAIN PARENTHESES(__VA_ARGS__))
#define EACH_AGAIN() EACH_NEXT
#define MEMBERS(type, ...)                                      \
  template <>                                                   \
  struct Members<type> {                                        \
    static constexpr const char* names = #__VA_ARGS__;          \
    static void each(auto& c, auto visit) { EACH(__VA_ARGS__) } \
  }

MEMBERS(VectorQuantizerOptions, codebook_size, codebook_dim, decay, eps, commitment_weight,
        kmeans_init, kmeans_iters, use_cosine_sim, threshold_ema_dead_code);
MEMBERS(LfqOptions, entropy_loss_weight, commitment_loss_weight, diversity_gamma, num_codebooks,
        keep_num_codebooks_dim, codebook_scale, frac_per_sample_entropy,
        use_code_agnostic_commit_loss, projection_has_bias, soft_clamp_input_value,
        cosine_sim_project_in, cosine_sim_project_in_scale, channel_first);
MEMBERS(VqganConfig, dim, channels, layers, l2_recon_loss, use_hinge_loss, lookup_free_quantization,
        codebook_size, use_vgg_and_gan, discr_layers, layer_mults, num_resnet_blocks, resnet_groups,
        first_conv_kernel_size, lfq, vq);
MEMBERS(NuwaVqganConfig, dim, image_size, channels, num_layers, layer_mults, l2_recon_loss,
        use_hinge_loss, num_resnet_blocks, use_attn, attn_dim_head, attn_heads, attn_dropout,
        resnet_groups, first_conv_kernel_size, use_vgg_and_gan, vq);
MEMBERS(NuwaConfig, dim, vae, max_video_frames, text_num_tokens, text_max_seq_len, text_enc_depth,
        text_enc_dim_head, text_enc_heads, text_rotary_pos_emb, enc_reversible, dec_depth,
        dec_dim_head, dec_heads, dec_reversible, attn_dropout, ff_dropout, embed_gradient_frac,
        shift_video_tokens, sparse_3dna_kernel_size, sparse_3dna_query_num_frames_chunk,
        sparse_3dna_dilation, sparse_3dna_rel_pos_bias, compat);
MEMBERS(VideoLayerSpec, type, size);
MEMBERS(VideoDiscriminatorConfig, dim, image_size, channels, max_dim, linear_attn_dim_head,
        linear_attn_heads, ff_mult, antialiased_downsample, scale);
MEMBERS(VideoTokenizerConfig, image_size, layers, residual_conv_kernel_size, num_codebooks,
        codebook_size, channels, init_dim, max_dim, dim_cond, dim_cond_expansion_factor,
        input_conv_kernel_size, output_conv_kernel_size, pad_mode, lfq_entropy_loss_weight,
        lfq_commitment_loss_weight, lfq_diversity_gamma, quantizer_aux_loss_weight, use_fsq,
        fsq_levels, attn_dim_head, attn_heads, attn_dropout, linear_attn_dim_head,
        linear_attn_heads, perceptual_loss_weight, discr_kwargs, multiscale_discrs, use_gan,
        adversarial_loss_weight, grad_penalty_loss_weight, multiscale_adversarial_loss_weight,
        separate_first_frame_encoding, compat);
MEMBERS(MulanTransformerConfig, dim, depth, dim_head, heads, attn_dropout, ff_mult, ff_dropout);
MEMBERS(MulanAudioConfig, patch_size, accept_spec, accept_spec_time_first, spec_n_fft, spec_power,
        spec_win_length, spec_hop_length, spec_pad, spec_center, spec_pad_mode,
        spec_aug_stretch_factor, spec_aug_freq_mask, spec_aug_time_mask, patch_dropout_prob);
MEMBERS(MulanTextConfig, num_tokens, max_seq_len, pad_id);
MEMBERS(MulanConfig, audio, text, dim_latent, decoupled_contrastive_learning,
        hierarchical_contrastive_loss, hierarchical_contrastive_loss_layers,
        sigmoid_contrastive_loss, spec_augment);
MEMBERS(SageConvConfig, aggr, normalize, root_weight, project, bias);
MEMBERS(LocalAttentionConfig, dim_head, heads, qk_rmsnorm, qk_scale, use_rotary_pos_emb, use_xpos,
        xpos_scale_base, exact_windowsize, gate_values_per_head, shared_qk, look_backward,
        look_forward);
MEMBERS(LinearAttentionConfig, dim_head, heads, one_headed_kv, gate_value_heads, combine_heads,
        shift_tokens, dropout);
MEMBERS(ResidualConfig, quantize_dropout, quantize_dropout_cutoff_index,
        quantize_dropout_multiple_of);
MEMBERS(ResidualLfqConfig, entropy_loss_weight, diversity_gamma, frac_per_sample_entropy,
        use_code_agnostic_commit_loss, soft_clamp_input_value);
MEMBERS(ResidualVqConfig, codebook_dim, decay, eps, kmeans_init, use_cosine_sim, kmeans_iters,
        threshold_ema_dead_code);
MEMBERS(MeshAutoencoderConfig, num_discrete_coors, coor_continuous_range, dim_coor_embed,
        num_discrete_area, dim_area_embed, num_discrete_normals, dim_normal_embed,
        num_discrete_angle, dim_angle_embed, encoder_dims_through_depth, init_decoder_conv_kernel,
        decoder_dims_through_depth, dim_codebook, num_quantizers, codebook_size, use_residual_lfq,
        rq_kwargs, rvq_kwargs, rlfq_kwargs, rvq_stochastic_sample_codes, sageconv_kwargs,
        commit_loss_weight, bin_smooth_blur_sigma, attn_encoder_depth, attn_decoder_depth,
        local_attn_kwargs, local_attn_window_size, linear_attn_kwargs, use_linear_attn, pad_id,
        attn_dropout, ff_dropout, resnet_dropout, quads, compat);
MEMBERS(DecoderArguments, ff_glu, ff_glu_mult_bias, ff_mult, ff_swish, ff_relu_squared,
        ff_post_act_ln, ff_no_bias, attn_num_mem_kv, attn_kv_heads, attn_one_kv_head, attn_qk_norm,
        attn_qk_norm_dim_scale, attn_qk_norm_scale, attn_head_scale, attn_gate_values,
        rotary_pos_emb, rotary_emb_dim, rotary_interpolation_factor, rotary_base_rescale_factor,
        alibi_pos_bias, alibi_num_heads, rel_pos_bias, rel_pos_num_buckets, rel_pos_max_distance,
        use_scalenorm, use_rmsnorm, use_simple_rmsnorm, sandwich_norm, scale_residual);
MEMBERS(TextEncoderConfig, depth, heads, dim_head, max_bytes);
MEMBERS(MeshTransformerConfig, codebook_size, num_quantizers, quads, dim, max_seq_len, flash_attn,
        attn_depth, attn_dim_head, attn_heads, attn_kwargs, cross_attn_num_mem_kv, dropout,
        coarse_pre_gateloop_depth, fine_pre_gateloop_depth, gateloop_use_heinsen, fine_attn_depth,
        pad_id, condition_on_text, text_condition_cond_drop_prob, dim_text, text_encoder,
        autoencoder, compat);

}  // namespace millrace::config_round_trip
