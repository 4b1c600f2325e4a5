package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.TensorInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * The rules that divide tensors among the ranks of tensor parallelism: which ones, and along which
 * dimension. The first rule whose pattern matches in a tensor's name counts. A tensor without a
 * rule goes whole to every rank.
 */
public final class ShardRules {
  /** In place of a dimension: every rank has the whole tensor. */
  public static final int WHOLE = -1;

  private static final String WHOLE_NAME = "whole";

  /**
   * A rule.
   *
   * @param names a pattern that is found in the names
   * @param dimension or {@link #WHOLE}
   * @param strict whether a tensor that cannot be divided evenly is an error; else everybody has
   *     all of it
   */
  private record Rule(Pattern names, int dimension, boolean strict) {}

  private static final ShardRules ROWS =
      new ShardRules("rows", List.of(new Rule(Pattern.compile(""), 0, false)));

  /** As the layers of LLaMA-like transformers are usually divided (Megatron-LM, section 3). */
  private static final ShardRules MEGATRON =
      new ShardRules(
          "megatron",
          List.of(
              new Rule(
                  Pattern.compile("(o_proj|down_proj|attn_output|ffn_down)\\.weight$"), 1, true),
              new Rule(
                  Pattern.compile(
                      "(q_proj|k_proj|v_proj|gate_proj|up_proj|attn_[qkv]|ffn_gate|ffn_up)\\."
                          + "(weight|bias)$|(embed_tokens|lm_head|token_embd)\\.weight$|^output\\.weight$"),
                  0,
                  true)));

  private final String name;

  /** The rule of a tensor, by its name. */
  private final Function<String, Optional<Rule>> rules;

  private ShardRules(String name, List<Rule> rules) {
    this(
        name,
        tensor -> rules.stream().filter(rule -> rule.names.matcher(tensor).find()).findFirst());
  }

  private ShardRules(String name, Function<String, Optional<Rule>> rules) {
    this.name = name;
    this.rules = rules;
  }

  /** Every tensor along its first dimension if that divides evenly. */
  public static ShardRules rows() {
    return ROWS;
  }

  /**
   * Column-parallel projections along dimension 0, row-parallel ones along dimension 1, by the
   * names that LLaMA-like models have in safetensors and GGUF.
   */
  public static ShardRules megatron() {
    return MEGATRON;
  }

  /**
   * A dimension, or {@link #WHOLE}, for each tensor by its name. A tensor that cannot be divided
   * evenly along its dimension is an error.
   *
   * @param dimensions those that are not in it stay whole
   */
  public static ShardRules of(Map<String, Integer> dimensions) {
    Pattern any = Pattern.compile("");
    Map<String, Integer> all = Map.copyOf(dimensions);
    return new ShardRules(
        all.size() + " tensors by name",
        tensor -> Optional.ofNullable(all.get(tensor)).map(d -> new Rule(any, d, true)));
  }

  /**
   * Reads rules: {@code rows}, {@code megatron}, or {@code PATTERN=DIMENSION} and {@code
   * PATTERN=whole}, of which the first match counts.
   *
   * @throws InvalidRequestException if a rule is none of these
   */
  public static ShardRules parse(List<String> texts) {
    if (texts.size() == 1 && texts.getFirst().equals(ROWS.name)) {
      return ROWS;
    }
    if (texts.size() == 1 && texts.getFirst().equals(MEGATRON.name)) {
      return MEGATRON;
    }
    List<Rule> rules = new ArrayList<>();
    for (String text : texts) {
      int equals = text.lastIndexOf('=');
      if (equals < 0) {
        throw new InvalidRequestException(
            "'%s' is not a rule: rows, megatron, PATTERN=DIMENSION or PATTERN=whole"
                .formatted(text));
      }
      rules.add(rule(text.substring(0, equals), text.substring(equals + 1)));
    }
    return new ShardRules(String.join(" ", texts), rules);
  }

  private static Rule rule(String pattern, String dimension) {
    try {
      int d = dimension.equals(WHOLE_NAME) ? WHOLE : Integer.parseInt(dimension);
      if (d < WHOLE) {
        throw new InvalidRequestException("dimension " + dimension + " is negative");
      }
      return new Rule(Pattern.compile(pattern), d, true);
    } catch (NumberFormatException e) {
      throw new InvalidRequestException("'" + dimension + "' is not a dimension, and not 'whole'");
    } catch (PatternSyntaxException e) {
      throw new InvalidRequestException(
          "'" + pattern + "' is not a pattern: " + e.getDescription());
    }
  }

  /**
   * A rank's part of a tensor.
   *
   * @return null: all of it
   * @throws InvalidRequestException if a rule wants it divided, and that is not possible evenly
   */
  @Nullable TensorSlice slice(TensorInfo tensor, int rank, int ranks) {
    int d = dimension(tensor, ranks);
    if (d == WHOLE) {
      return null;
    }
    long each = tensor.dimension(d) / ranks;
    return new TensorSlice(d, rank * each, (rank + 1) * each);
  }

  /**
   * The dimension along which a tensor is divided.
   *
   * @param ranks above 0; each has as much of it
   * @return {@link #WHOLE}: it is not, every rank has all of it
   * @throws InvalidRequestException if a rule wants it divided, and that is not possible evenly
   */
  public int dimension(TensorInfo tensor, int ranks) {
    return rules.apply(tensor.name()).map(rule -> dimension(rule, tensor, ranks)).orElse(WHOLE);
  }

  private static int dimension(Rule rule, TensorInfo tensor, int ranks) {
    int d = rule.dimension;
    if (d == WHOLE) {
      return WHOLE;
    }
    long length = d < tensor.rank() ? tensor.dimension(d) : 0;
    boolean last = d == tensor.rank() - 1;
    long unit = last ? (long) ranks * tensor.type().blockElements() : ranks;
    if (length != 0 && length % unit == 0) {
      return d;
    }
    if (rule.strict) {
      throw new InvalidRequestException(
          "tensor '%s' cannot be divided into %d parts along dimension %d: %s"
              .formatted(tensor.name(), ranks, d, tensor));
    }
    return WHOLE;
  }

  @Override
  public String toString() {
    return name;
  }
}
