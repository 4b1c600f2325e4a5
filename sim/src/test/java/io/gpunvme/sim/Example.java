package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.util.function.Function;

/** A valid command in a fresh {@link CommandLab}, to be spoiled, and the section it comes from. */
enum Example {
  DELETE_SQ("Base 2.0, 5.7", true, l -> RawHost.deleteSq(1)),
  CREATE_SQ("Base 2.0, 5.5", true, CommandLab::createSq),
  GET_LOG_PAGE("Base 2.0, 5.16", true, CommandLab::getErrorLog),
  DELETE_CQ(
      "Base 2.0, 5.6",
      true,
      l -> {
        l.host.adminOk(l.createCq());
        return RawHost.deleteCq(2);
      }),
  CREATE_CQ("Base 2.0, 5.4", true, CommandLab::createCq),
  IDENTIFY("Base 2.0, 5.17", true, CommandLab::identifyController),
  IDENTIFY_NAMESPACE("Base 2.0, 5.17.2", true, l -> l.identify(Cns.NAMESPACE, 1)),
  IDENTIFY_ACTIVE("Base 2.0, 5.17.2", true, l -> l.identify(Cns.ACTIVE_NAMESPACES, 0)),
  IDENTIFY_DESCRIPTORS("Base 2.0, 5.17.2", true, l -> l.identify(Cns.NAMESPACE_DESCRIPTORS, 1)),
  IDENTIFY_ALLOCATED("Base 2.0, 5.17.2", true, l -> l.identify(Cns.ALLOCATED_NAMESPACE, 1)),
  IDENTIFY_ATTACHED("Base 2.0, 5.17.2", true, l -> l.identify(Cns.ATTACHED_CONTROLLERS, 1)),
  ABORT("Base 2.0, 5.1", true, CommandLab::abort),
  SET_ARBITRATION(
      "Base 2.0, 5.27.1.1", true, l -> l.setFeature(FeatureId.ARBITRATION, 0x0102_0304)),
  SET_POWER("Base 2.0, 5.27.1.2", true, l -> l.setFeature(FeatureId.POWER_MANAGEMENT, 0)),
  SET_TEMPERATURE(
      "Base 2.0, 5.27.1.3", true, l -> l.setFeature(FeatureId.TEMPERATURE_THRESHOLD, 350)),
  SET_WRITE_CACHE("Base 2.0, 5.27.1.4", true, l -> l.setFeature(FeatureId.VOLATILE_WRITE_CACHE, 0)),
  SET_QUEUES(
      "Base 2.0, 5.27.1.5",
      true,
      l -> {
        l.host.deleteQueue(l.queue);
        return l.setFeature(FeatureId.NUMBER_OF_QUEUES, 1 | 1 << 16);
      }),
  SET_VECTOR(
      "Base 2.0, 5.27.1.7",
      true,
      l -> l.setFeature(FeatureId.INTERRUPT_VECTOR_CONFIG, 3 | 1 << 16)),
  SET_EVENTS("Base 2.0, 5.27.1.8", true, l -> l.setFeature(FeatureId.ASYNC_EVENT_CONFIG, 0x102)),
  SET_HMB("Base 2.0, 5.27.1.10", true, CommandLab::setHmb),
  SET_TIMESTAMP("Base 2.0, 5.27.1.11", true, CommandLab::setTimestamp),
  SET_ATOMICITY("NVM 1.0, 4.1.3", true, l -> l.setFeature(FeatureId.WRITE_ATOMICITY, 0)),
  SET_ERROR_RECOVERY(
      "NVM 1.0, 4.1.3",
      true,
      l -> {
        MemorySegment s = l.setFeature(FeatureId.ERROR_RECOVERY, 5);
        Sqe.nsid(s, 0, 1);
        return s;
      }),
  GET_FEATURES("Base 2.0, 5.15", true, l -> l.getFeature(FeatureId.ARBITRATION, 0)),
  GET_TEMPERATURE("Base 2.0, 5.15", true, l -> l.getFeature(FeatureId.TEMPERATURE_THRESHOLD, 0)),
  GET_VECTOR("Base 2.0, 5.15", true, l -> l.getFeature(FeatureId.INTERRUPT_VECTOR_CONFIG, 0)),
  GET_TIMESTAMP("Base 2.0, 5.15", true, CommandLab::getTimestamp),
  GET_ERROR_RECOVERY(
      "Base 2.0, 5.15",
      true,
      l -> {
        MemorySegment s = l.getFeature(FeatureId.ERROR_RECOVERY, 0);
        Sqe.nsid(s, 0, 1);
        return s;
      }),
  ASYNC_EVENT_REQUEST("Base 2.0, 5.2", true, CommandLab::asyncEventRequest),
  CREATE_NAMESPACE("Base 2.0, 5.23", true, CommandLab::createNamespace),
  DELETE_NAMESPACE("Base 2.0, 5.23", true, l -> l.deleteNamespace(1)),
  ATTACH(
      "Base 2.0, 5.22",
      true,
      l -> {
        l.host.adminOk(l.attach(1, 1));
        return l.attach(1, 0);
      }),
  DETACH("Base 2.0, 5.22", true, l -> l.attach(1, 1)),
  KEEP_ALIVE("Base 2.0, 5.18", true, CommandLab::keepAlive),
  DOORBELL_BUFFER("Base 2.0, 5.8", true, CommandLab::doorbellBuffer),
  FORMAT("Base 2.0, 5.14", true, CommandLab::format),
  LOG_SMART("Base 2.0, 5.16", true, l -> l.getLog(LogId.SMART, 512)),

  FLUSH("Base 2.0, 7.1", false, CommandLab::flush),
  WRITE("NVM 1.0, 3.2.6", false, l -> l.transfer(IoOpcode.WRITE)),
  READ("NVM 1.0, 3.2.4", false, l -> l.transfer(IoOpcode.READ)),
  WRITE_UNCORRECTABLE("NVM 1.0, 3.2.7", false, l -> l.range(IoOpcode.WRITE_UNCORRECTABLE)),
  COMPARE("NVM 1.0, 3.2.1", false, l -> l.transfer(IoOpcode.COMPARE)),
  WRITE_ZEROES("NVM 1.0, 3.2.8", false, l -> l.range(IoOpcode.WRITE_ZEROES)),
  DSM("NVM 1.0, 3.2.3", false, CommandLab::dsm),
  VERIFY("NVM 1.0, 3.2.5", false, l -> l.range(IoOpcode.VERIFY)),
  COPY("NVM 1.0, 3.2.2", false, CommandLab::copy);

  final String section;
  final boolean admin;
  final Function<CommandLab, MemorySegment> command;

  Example(String section, boolean admin, Function<CommandLab, MemorySegment> command) {
    this.section = section;
    this.admin = admin;
    this.command = command;
  }
}
