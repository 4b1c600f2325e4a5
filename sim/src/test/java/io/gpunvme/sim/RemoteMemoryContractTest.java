package io.gpunvme.sim;

import org.junit.jupiter.api.Nested;

/**
 * What holds for queues, lists and data in host memory holds in remote memory too: the same tests
 * with all memory of the host, admin queues included, behind ports.
 */
@InRemoteMemory
class RemoteMemoryContractTest {
  @Nested
  class Rings extends QueueRingTest {}

  @Nested
  class Queues extends QueueAdminTest {}

  @Nested
  class Aborts extends QueueAbortTest {}

  @Nested
  class Commands extends EngineCommandTest {}

  @Nested
  class Faults extends EngineFaultTest {}

  @Nested
  class CorruptionFaults extends FaultCorruptionTest {}

  @Nested
  class Threads extends EngineThreadTest {}

  @Nested
  class Abuse extends EngineFuzzTest {}

  @Nested
  class Prps extends PrpWalkTest {}

  @Nested
  class Sgls extends PrpWalkSglTest {}

  @Nested
  class Io extends IoCommandTest {}

  @Nested
  class RandomIo extends IoCommandRandomTest {
    /** Copies that go on by themselves are kept account of; no promise is made for those. */
    @Override
    void readAndWriteAllocateNothing() {}
  }

  @Nested
  class Admin extends AdminCommandTest {}

  @Nested
  class Features extends FeatureCommandTest {}

  @Nested
  class Logs extends LogPageTest {}

  @Nested
  class Identify extends IdentifyDataTest {}

  @Nested
  class VanishingMemory extends DmaFaultTest {}
}
