package io.gpunvme.models;

import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Which layers of a model stay in the accelerator's memory, and the ring that the others are read
 * through in each pass: planned before anything is read or allocated. Experts that only a router
 * chooses go through a second ring. Immutable.
 *
 * @param layers how many there are
 * @param resident the numbers of those that stay, from 0, ascending
 * @param slots of the ring; 0 if all layers stay
 * @param slotBytes of one slot; 0 if all layers stay
 * @param fixedBytes of what is in no layer, which stays
 * @param residentBytes of the layers that stay, as they are used
 * @param convertedBytes needed while tensors of a layer are converted; 0 if none has to be
 * @param passBytes read in each pass through the layers: for each token, when one is made at a
 *     time; experts that are chosen come on top
 * @param expertSlotBytes of one slot of the second ring, for all experts of any layer; 0 if no
 *     layer that is streamed has any
 * @param routerBytes of the routers of layers that are streamed, which stay
 */
public record StreamPlan(
    int layers,
    List<Integer> resident,
    int slots,
    long slotBytes,
    long fixedBytes,
    long residentBytes,
    long convertedBytes,
    long passBytes,
    long expertSlotBytes,
    long routerBytes) {
  /** The budget that lets everything stay. */
  public static final long EVERYTHING = Long.MAX_VALUE;

  /**
   * In place of a number of slots: 4, or fewer where the budget has no room, or where layers that
   * stay in their place save more time.
   */
  public static final int ANY_SLOTS = 0;

  /** Fewest slots of a ring: one is used while another is read. */
  public static final int FEWEST_SLOTS = 2;

  /** Slots of the second ring: one layer's experts are used while the next one's are read. */
  public static final int EXPERT_SLOTS = 2;

  /**
   * Tensors in a slot begin at multiples of this, in bytes. As {@code _ALIGNMENT} of Python's
   * {@code _recipe.py}: PyTorch's own do on a GPU, and kernels choose their way by that.
   */
  public static final long ALIGNMENT = 512;

  /** Most layers, since the time for a plan grows with their square. */
  public static final int MOST_LAYERS = 10_000;

  private static final int USUAL_SLOTS = 4;

  /**
   * The rate that layers come at through rings of so many slots, of that through {@value
   * #USUAL_SLOTS}: the least of what was measured ({@code docs/streaming.md}).
   */
  private static final double[] RATES = {0, 0, 0.83, 0.95, 1};

  /** Slots are rounded up to this, and the ring has one such piece more, for trials. */
  private static final long PAGE = 4096;

  /** Copies the list. */
  public StreamPlan {
    resident = List.copyOf(resident);
  }

  /**
   * Plans. Layers that stay are spread evenly among the others, so that reading goes on while they
   * compute; a layer without bytes stays always, and one that stays does so with all its experts.
   *
   * @param fixedBytes of what is in no layer, 0 or more
   * @param budget of bytes for everything; {@link #EVERYTHING}; or 0: no layer stays, whatever the
   *     rest takes
   * @param slots of the ring, {@value #FEWEST_SLOTS}..{@value LayerLoader#MOST_SLOTS}, or {@link
   *     #ANY_SLOTS}
   * @throws InvalidRequestException if the budget has no room for a ring of that many slots, or of
   *     two, and for the ring of experts, with the number of bytes that would do; or a number is
   *     out of range
   */
  public static StreamPlan of(List<LayerSize> layers, long fixedBytes, long budget, int slots) {
    if (slots != ANY_SLOTS && (slots < FEWEST_SLOTS || slots > LayerLoader.MOST_SLOTS)) {
      throw new InvalidRequestException(
          "a ring has %d slots at least and %d at most, not %d: one is used while others are read"
              .formatted(FEWEST_SLOTS, LayerLoader.MOST_SLOTS, slots));
    }
    if (budget < 0 || fixedBytes < 0) {
      throw new InvalidRequestException(
          "a budget of %d bytes, and %d bytes in no layer".formatted(budget, fixedBytes));
    }
    if (layers.size() > MOST_LAYERS) {
      throw new InvalidRequestException(
          "%d layers are more than %d".formatted(layers.size(), MOST_LAYERS));
    }
    try {
      return new Planning(layers, fixedBytes).plan(budget, slots);
    } catch (ArithmeticException e) {
      throw new InvalidRequestException("the layers or their ring have 2^63 bytes or more");
    }
  }

  /**
   * The smallest budget, above 0, that {@link #of} accepts.
   *
   * @param slots as there
   * @throws InvalidRequestException as there
   */
  public static long leastBudget(List<LayerSize> layers, long fixedBytes, int slots) {
    int fewest = slots == ANY_SLOTS ? FEWEST_SLOTS : slots;
    return Math.min(
        of(layers, fixedBytes, 0, fewest).deviceBytes(),
        of(layers, fixedBytes, EVERYTHING, slots).deviceBytes());
  }

  /** How many layers are read in each pass. */
  public int streamed() {
    return layers - resident.size();
  }

  /** Memory of the ring; 0 if all layers stay. */
  public long ringBytes() {
    return ringOf(slots, slotBytes);
  }

  /** Slots of the second ring; 0 if there is none. */
  public int expertSlots() {
    return expertSlotBytes == 0 ? 0 : EXPERT_SLOTS;
  }

  /** Memory of the second ring; 0 if there is none. */
  public long expertRingBytes() {
    return ringOf(expertSlots(), expertSlotBytes);
  }

  /** The most memory of the accelerator that all this takes at a time. */
  public long deviceBytes() {
    return fixedBytes
        + residentBytes
        + ringBytes()
        + expertRingBytes()
        + routerBytes
        + convertedBytes;
  }

  /** How many layers are read at a time while another one is used. */
  public int readsInFlight() {
    int others = Math.min(slots - 1, streamed());
    return slots == 0 ? 0 : Math.min(others, LayerOptions.defaults().reads());
  }

  /**
   * The least time of a pass.
   *
   * @param expertBytes of experts that are chosen in it, which are read besides; 0 or more
   * @param bytesPerSecond that layers are read with, above 0
   * @param computeSeconds of a pass with all layers in memory; 0 if that is not known
   * @throws InvalidRequestException if a number is out of range
   */
  public StreamForecast forecast(long expertBytes, double bytesPerSecond, double computeSeconds) {
    if (expertBytes < 0 || !(bytesPerSecond > 0) || !(computeSeconds >= 0)) {
      throw new InvalidRequestException(
          "%d bytes of experts, a rate of %s bytes/s, and %s s of compute"
              .formatted(expertBytes, bytesPerSecond, computeSeconds));
    }
    return new StreamForecast(((double) passBytes + expertBytes) / bytesPerSecond, computeSeconds);
  }

  /** What is needed of the layers to plan. */
  private static final class Planning {
    private final List<LayerSize> layers;
    private final long fixed;

    /** Numbers of the layers that have bytes. */
    private final List<Integer> large;

    /** While a layer is loaded that stays: it is read as it is stored, and is converted then. */
    private final long loading;

    /** While a layer is converted, from its slot or at its loading. */
    private final long converted;

    private final long slot;
    private final long expertSlot;

    /** What a plan that streams needs besides its ring, while no layer with bytes stays. */
    private final long besides;

    private final long everything;

    Planning(List<LayerSize> layers, long fixed) {
      this.layers = layers;
      this.fixed = fixed;
      large = numbers().filter(i -> layers.get(i).stored() > 0).boxed().toList();
      loading = layers.stream().mapToLong(LayerSize::unconverted).max().orElse(0);
      long longest = layers.stream().mapToLong(LayerSize::converted).max().orElse(0);
      converted = Math.max(loading, longest);
      slot = Align.upExact(layers.stream().mapToLong(LayerSize::stored).max().orElse(0), PAGE);
      expertSlot =
          Align.upExact(layers.stream().mapToLong(LayerSize::experts).max().orElse(0), PAGE);
      List<Integer> all = numbers().boxed().toList();
      long experts =
          Math.addExact(ringOf(expertSlot == 0 ? 0 : EXPERT_SLOTS, expertSlot), routers(all));
      List<Integer> empty = numbers().filter(i -> layers.get(i).stored() == 0).boxed().toList();
      besides = Math.addExact(sum(fixed, converted, experts), used(empty));
      everything = sum(fixed, used(all), loading);
    }

    private IntStream numbers() {
      return IntStream.range(0, layers.size());
    }

    private long used(List<Integer> numbers) {
      return numbers.stream().mapToLong(i -> layers.get(i).used()).reduce(0, Math::addExact);
    }

    private long routers(List<Integer> numbers) {
      return numbers.stream().mapToLong(i -> layers.get(i).router()).reduce(0, Math::addExact);
    }

    StreamPlan plan(long budget, int slots) {
      if (everything <= budget || large.isEmpty()) {
        List<Integer> all = numbers().boxed().toList();
        return new StreamPlan(layers.size(), all, 0, 0, fixed, used(all), loading, 0, 0, 0);
      }
      int fewest = slots == ANY_SLOTS ? FEWEST_SLOTS : slots;
      long least = Math.addExact(besides, ringOf(fewest, slot));
      if (budget > 0 && budget < least) {
        throw tooSmall(budget, least, fewest);
      }
      int ring = slots == ANY_SLOTS ? slots(budget) : slots;
      Set<Integer> chosen = Set.copyOf(resident(ring, budget));
      List<Integer> stay =
          numbers().filter(i -> chosen.contains(i) || layers.get(i).stored() == 0).boxed().toList();
      List<Integer> streamed = large.stream().filter(i -> !chosen.contains(i)).toList();
      long pass = 0;
      for (int i : streamed) {
        pass = Math.addExact(pass, layers.get(i).stored());
      }
      boolean choosing = streamed.stream().anyMatch(i -> layers.get(i).experts() > 0);
      return new StreamPlan(
          layers.size(),
          stay,
          ring,
          slot,
          fixed,
          used(stay),
          converted,
          pass,
          choosing ? expertSlot : 0,
          routers(streamed));
    }

    private InvalidRequestException tooSmall(long budget, long least, int fewest) {
      String what =
          everything <= least
              ? "then all layers stay"
              : "for a ring of %d slots for the longest layer%s"
                  .formatted(
                      fewest,
                      expertSlot == 0 ? "" : ", and one of %d for experts".formatted(EXPERT_SLOTS));
      return new InvalidRequestException(
          "a budget of %d bytes is not enough; %d are%s, %s; 0 means that no layer stays, whatever that takes"
              .formatted(
                  budget,
                  Math.min(everything, least),
                  fixed == 0 ? "" : ", with %d in no layer".formatted(fixed),
                  what));
    }

    /** With which a pass is read soonest; of equal ones the most. */
    private int slots(long budget) {
      if (budget == 0) {
        return USUAL_SLOTS;
      }
      int best = (int) Math.min(USUAL_SLOTS, (budget - besides - PAGE) / slot);
      for (int fewer = best - 1; fewer >= FEWEST_SLOTS; fewer--) {
        if (read(fewer, budget) / RATES[fewer] < read(best, budget) / RATES[best]) {
          best = fewer;
        }
      }
      return best;
    }

    /** Bytes of a pass with a ring of so many slots. */
    private double read(int slots, long budget) {
      Set<Integer> stay = Set.copyOf(resident(slots, budget));
      return large.stream()
          .filter(i -> !stay.contains(i))
          .mapToDouble(i -> layers.get(i).stored())
          .sum();
    }

    private List<Integer> resident(int slots, long budget) {
      return spread(budget - Math.addExact(besides, ringOf(slots, slot)));
    }

    /** As many as there is room for, at equal distances, but never all. */
    private List<Integer> spread(long room) {
      int count = 0;
      while (count + 1 < large.size() && taken(count + 1) <= room) {
        count++;
      }
      return spread(count);
    }

    /** What so many layers take if they stay: their routers do so anyway. */
    private long taken(int count) {
      long bytes = 0;
      for (int i = 0; i < count; i++) {
        LayerSize layer = layers.get(spread(i, count));
        bytes = Math.addExact(bytes, layer.used() - layer.router());
      }
      return bytes;
    }

    /** The number of one of so many layers. */
    private int spread(int index, int count) {
      return large.get((int) ((long) index * large.size() / count));
    }

    private List<Integer> spread(int count) {
      List<Integer> some = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        some.add(spread(i, count));
      }
      return some;
    }
  }

  private static long sum(long a, long b, long c) {
    return Math.addExact(Math.addExact(a, b), c);
  }

  private static long ringOf(int slots, long slotBytes) {
    return slots == 0 ? 0 : Math.addExact(Math.multiplyExact(slots, slotBytes), PAGE);
  }
}
