// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

// Point-to-point links of ns-3: 12 Mbit/s, 20 ms, a drop-tail queue of 1000 packets; 1500 bytes on
// the wire every 1.05 ms on each, without protocols above the devices and without traces.
//
//     point_to_point PACKETS LINKS
//
// PACKETS in all are shared out to LINKS links. Prints how many were received and the processor time
// of the simulation alone, in nanoseconds.

#include <ctime>
#include <iostream>

#include <ns3/core-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

using namespace ns3;

namespace {

const uint32_t kWireBytes = 1500;
const uint32_t kPppHeaderBytes = 2;

uint64_t g_received = 0;

bool Receive(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&) {
    ++g_received;
    return true;
}

struct Source {
    Ptr<NetDevice> device;
    Address to;
    uint64_t left;

    void Send() {
        device->Send(Create<Packet>(kWireBytes - kPppHeaderBytes), to, 0x0800);
        if (--left > 0) {
            Simulator::Schedule(MicroSeconds(1050), &Source::Send, this);
        }
    }
};

uint64_t ProcessorNanoseconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) {
        std::cerr << "usage: point_to_point PACKETS LINKS\n";
        return 2;
    }
    const uint64_t packets = std::stoull(words[1]);
    const uint64_t links = std::stoull(words[2]);

    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", StringValue("12Mbps"));
    helper.SetChannelAttribute("Delay", StringValue("20ms"));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));

    std::vector<Source> sources(links);
    for (Source& source : sources) {
        NodeContainer nodes;
        nodes.Create(2);
        NetDeviceContainer devices = helper.Install(nodes);
        devices.Get(1)->SetReceiveCallback(MakeCallback(&Receive));
        source = {devices.Get(0), devices.Get(1)->GetAddress(), packets / links};
        Simulator::Schedule(Seconds(0), &Source::Send, &source);
    }

    const uint64_t begin = ProcessorNanoseconds();
    Simulator::Run();
    const uint64_t end = ProcessorNanoseconds();
    std::cout << g_received << " " << end - begin << "\n";
    Simulator::Destroy();
    return 0;
}
