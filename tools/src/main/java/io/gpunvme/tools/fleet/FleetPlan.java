package io.gpunvme.tools.fleet;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a fleet's loads and checkpoints take by each way.
 *
 * @param fleet that was asked about
 * @param parameters that were used
 * @param ways in the order of {@link Way}
 */
public record FleetPlan(Fleet fleet, Parameters parameters, List<ByWay> ways) {
  private static final double MIDDLE = 0.5;

  /**
   * One way.
   *
   * @param load of the model by all machines
   * @param storedBytes of the model on the SSDs of each machine
   * @param save of a checkpoint, null if this way has none
   * @param restore of that checkpoint on the machines that wrote it, null if this way has none
   * @param survives whether a checkpoint is whole without the machines that are lost; by peers only
   *     if none of them has another's second copy
   * @param loss what lost machines cost, null if none are
   */
  public record ByWay(
      Way way,
      Traffic load,
      double storedBytes,
      @Nullable Traffic save,
      @Nullable Traffic restore,
      boolean survives,
      @Nullable Loss loss) {}

  /**
   * Machines fail in the middle of a load.
   *
   * @param seconds from the beginning of the load until spares and all others have everything; null
   *     if they never have
   * @param extraSeconds more than without the loss; null if there is no end
   * @param moreBytes read from SSDs or from the pool than without the loss
   * @param what happens, a sentence
   */
  public record Loss(
      @Nullable Double seconds, @Nullable Double extraSeconds, double moreBytes, String what) {}

  /** The list is copied. */
  public FleetPlan {
    ways = List.copyOf(ways);
  }

  /** By all ways that are possible. */
  public static FleetPlan of(Fleet fleet, Parameters parameters) {
    List<ByWay> ways = new ArrayList<>();
    for (Way way : Way.values()) {
      if (way != Way.PEERS || fleet.placement() != Placement.ALONE) {
        ways.add(by(fleet, parameters, way));
      }
    }
    return new FleetPlan(fleet, parameters, ways);
  }

  /**
   * By one way.
   *
   * @throws InvalidRequestException if it is not possible
   */
  public static FleetPlan of(Fleet fleet, Parameters parameters, Way way) {
    if (way == Way.PEERS && fleet.placement() == Placement.ALONE) {
      throw new InvalidRequestException(
          "placement alone shares nothing, so nothing comes from peers: choose placement gpu");
    }
    return new FleetPlan(fleet, parameters, List.of(by(fleet, parameters, way)));
  }

  private static ByWay by(Fleet fleet, Parameters parameters, Way way) {
    Traffic load = LoadRun.plain(fleet, parameters, way);
    boolean written = way != Way.CACHE;
    return new ByWay(
        way,
        load,
        stored(fleet, way),
        written ? SaveRun.of(fleet, parameters, way) : null,
        written ? LoadRun.checkpoint(fleet, parameters, way) : null,
        fleet.lost() == 0
            || way == Way.POOL
            || way == Way.PEERS && 2 * fleet.lost() <= fleet.machines(),
        fleet.lost() > 0 ? loss(fleet, parameters, way, load) : null);
  }

  private static double stored(Fleet fleet, Way way) {
    double model = fleet.modelBytes();
    return switch (way) {
      case CACHE, OWN -> model;
      case PEERS -> fleet.machines() == 1 ? model : 2 * model / fleet.machines();
      case POOL -> 0;
    };
  }

  private static Loss loss(Fleet fleet, Parameters parameters, Way way, Traffic load) {
    double failAt = load.seconds() * MIDDLE;
    if (way != Way.PEERS) {
      Traffic traffic = LoadRun.spared(fleet, parameters, way, failAt);
      return new Loss(
          traffic.seconds(),
          traffic.seconds() - load.seconds(),
          fromStorage(traffic) - fromStorage(load),
          way == Way.POOL
              ? "the others go on; spares read all of theirs from the pool"
              : "the others go on; spares get theirs from the SSDs of all others by the network");
    }
    if (2 * fleet.lost() > fleet.machines()) {
      return new Loss(
          null,
          null,
          0,
          "parts of the model were on lost machines only: it must be copied there again");
    }
    Traffic again = LoadRun.gatheredWithSpares(fleet, parameters);
    double seconds = failAt + parameters.get(Parameter.DETECT) + again.seconds();
    return new Loss(
        seconds,
        seconds - load.seconds(),
        fromStorage(LoadRun.ended(fleet, parameters, way, failAt))
            + fromStorage(again)
            - fromStorage(load),
        "the collective ends for all, who begin again; machines with second copies read two parts");
  }

  private static double fromStorage(Traffic traffic) {
    return traffic.bytes("own SSDs") + traffic.bytes("pool");
  }
}
