package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;

/**
 * The Admin Command Set (Base 2.0, 5): checks what every command has in common, then hands the
 * command to whoever carries it out. Worker 0 only.
 */
final class AdminCommands implements CommandExecutor {
  private final ControllerLogs logs;
  private final FeatureStore store;
  private final QueueAdmin queues;
  private final ControllerEvents events;
  private final CommandRules rules;
  private final boolean strict;
  private final IdentifyData identify;
  private final FeatureCommands features;
  private final NamespaceCommands namespaces;

  AdminCommands(
      SimConfig config,
      QueueAdmin queues,
      ControllerEvents events,
      ControllerLogs logs,
      FeatureStore store,
      IdentifyData identify,
      FeatureCommands features,
      NamespaceCommands namespaces) {
    this.queues = queues;
    this.events = events;
    this.logs = logs;
    this.store = store;
    this.identify = identify;
    this.features = features;
    this.namespaces = namespaces;
    rules = new CommandRules(config);
    strict = config.strict();
  }

  /** Controller reset: what is volatile returns to its defaults. */
  void reset() {
    features.reset();
    logs.reset();
  }

  @Override
  public int execute(SimCommand c, Worker w) {
    CommandRule rule = rules.admin(c.opcode);
    if (rule == null) {
      return StatusCode.INVALID_OPCODE.dnr();
    }
    int status = rule.check(c, false, strict);
    if (status != 0) {
      return status;
    }
    return switch (c.opcode) {
      case AdminOpcode.CREATE_IO_SQ -> queues.createSq(c);
      case AdminOpcode.CREATE_IO_CQ -> queues.createCq(c);
      case AdminOpcode.DELETE_IO_SQ -> queues.deleteSq(c);
      case AdminOpcode.DELETE_IO_CQ -> queues.deleteCq(c);
      case AdminOpcode.ABORT -> queues.abort(c);
      case AdminOpcode.DOORBELL_BUFFER_CONFIG -> queues.doorbellBuffer(c);
      case AdminOpcode.ASYNC_EVENT_REQUEST -> events.request(c);
      case AdminOpcode.IDENTIFY -> identify.get(c, w);
      case AdminOpcode.GET_LOG_PAGE -> logs.get(c, w);
      case AdminOpcode.GET_FEATURES -> features.get(c, w);
      case AdminOpcode.SET_FEATURES -> features.set(c, w);
      case AdminOpcode.FORMAT_NVM -> namespaces.format(c);
      case AdminOpcode.NS_MANAGEMENT -> namespaces.manage(c, w);
      case AdminOpcode.NS_ATTACHMENT -> namespaces.attach(c, w);
      case AdminOpcode.KEEP_ALIVE -> {
        store.keepAlive(w.now());
        yield 0;
      }
      default -> throw new IllegalStateException("no code for " + Sqe.describe(c.sqe, 0));
    };
  }
}
