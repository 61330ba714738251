"""Which rows are measured. A row is a point (what the traffic and the Services are), a device under
test and a link; one factor at a time differs from the base point."""

BASE = {"family": 4, "proto": "tcp", "flows": 64_000, "services": 1_000, "backends": 10,
        "mode": "nat", "scheduler": "mh", "lengths": [60], "fresh": 0, "foreign": 0, "idle": "spin",
        "workers": 1, "pushed": False}
IMIX = [60] * 7 + [566] * 4 + [1514]  # 64, 570 and 1518 bytes on a wire
FULL = [1514]
IPTABLES = ("iptables-legacy", "iptables-nft")
KERNEL_MODES = ("nftables", *IPTABLES)
BESIDE = (("", "kernel"), ("kube-proxy-", "kube-proxy"))  # (in a row's name, device)
VHOST = (("", "sluiced"), ("-macswap", "testpmd-macswap"), ("-io", "testpmd-io"))


def row(name, dut="sluiced", link="memif", measures=("throughput",), pair=None,
        generator="embedded", **factors):
    """pair: the windows of the rows of one pair lie in turn, because a machine's speed drifts."""
    return {"name": name, "dut": dut, "link": link, "measures": list(measures), "pair": pair,
            "generator": generator, "point": {**BASE, **factors}}


PROFILED = ("throughput", "profile")
SCHEDULERS = ("random", "wrandom", "rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "sed",
              "nq", "mh")
BACKENDS = (1, 10, 100, 1_000)
# Every value of every factor, and where its figure is: a row, or a name that a bench without I/O
# prints.
FACTORS = {
    "frame": {"64 B": "base", "IMIX": "imix", "1500 B": "1500"},
    "flows": {"1": "flows-1", "1 k": "flows-1k", "64 k": "base", "1 M": "flows-1m",
              "4 M": "flows-4m", "16 M": "flows-16m"},
    "Services": {"1": "services-1", "1 k": "services-1k", "10 k": "services-10k",
                 "100 k": "services-100k"},
    "backends": {f"{count:,}": f"backends-{count}" for count in BACKENDS},
    "scheduler": {name: f"scheduler-{name}" for name in SCHEDULERS},
    "mode": {"nat": "base", "fullnat": "fullnat", "dr": "dr", "ipip": "ipip"},
    "family": {"IPv4": "base", "IPv6": "ipv6", "IPv6 UDP": "ipv6-udp",
               "IPv6 fullnat": "ipv6-fullnat", "IPv6 dr": "ipv6-dr", "IPv6 ipip": "ipv6-ipip"},
    "first packets": {"0": "base", "1 %": "new-1", "10 %": "new-10", "100 %": "new-100"},
    "workers": {"1": "base", "2": "workers-2", "2, no I/O": "workers_2/1"},
    "handed over": {f"{share} %": f"handed{share}%_4" for share in (0, 25, 50, 100)},
    "table swap": {"10 ms": "pushes", "10 ms, no I/O": "changes_every_10ms_goodput"},
    "beside established flows": {"a flood of new ones": "flood", "foreign frames": "foreign"}}
WITHOUT_IO = {*FACTORS["handed over"].values(), "workers_2/1", "changes_every_10ms_goodput"}


def pair(flows, link="memif", measures=("throughput",)):
    """sluiced, testpmd and the bare probe at a point that targets are for. What the latency of the
    others is, at the rates of sluiced, is what link, generator and machine make of it."""
    ours, tail = {64_000: ("base", ""), 1_000_000: ("flows-1m", "-1m")}[flows]
    tail, ours = (tail + "-zero-copy", ours + "-zero-copy") if link != "memif" else (tail, ours)
    peer_measures = [word for word in measures if word in ("throughput", "latency")]
    return [row(ours, link=link, measures=measures, pair=ours, flows=flows),
            row("macswap" + tail, "testpmd-macswap", link, peer_measures, ours, flows=flows),
            row("probe" + tail, "probe", link, peer_measures, ours, flows=flows)]


def quick():
    """Base point, targets and peers; a peer stands beside what it is compared with."""
    return [
        *pair(64_000, measures=("throughput", "search", "latency", "profile")),
        row("io", "testpmd-io", pair="base"),
        *pair(1_000_000, measures=PROFILED),
        row("flood", fresh=0.5, measures=("throughput", "flood")),
        row("pushes", pushed=True, scheduler="random", measures=("throughput", "search", "pushes")),
        *pair(64_000, "memif-zero-copy"),
        row("ipv6", family=6),
        row("fullnat", mode="fullnat"),
        row("veth-sluiced", link="veth", flows=1_000, services=10, scheduler="random"),
        row("veth-nftables", "kernel-nftables", "veth", flows=1_000, services=10,
            scheduler="random"),
    ]


YARDSTICK = "macswap@"  # before the name of a row: what testpmd does with its traffic, in turn
FITS_TWICE = 1_000_000  # flows


def beside_yardstick(rows):
    """Each row that stands alone on memif gets a peer of its own: one that was measured minutes
    before says more of the machine than of the row."""
    for one in rows:
        alone = one["pair"] is None and one["link"] == "memif" and one["dut"] == "sluiced"
        compared = not {"flood", "pushes"} & set(one["measures"]) and one["point"]["workers"] == 1
        if not alone or not compared or one["point"]["flows"] > FITS_TWICE:
            yield one
            continue
        same = {key: one["point"][key] for key in ("flows", "lengths", "family")}
        yield {**one, "pair": one["name"]}
        yield row(YARDSTICK + one["name"], "testpmd-macswap", pair=one["name"], **same)


def is_yardstick(name):
    """Of a row: it has no line of its own in a report, unless it failed."""
    return name.startswith(YARDSTICK)


def full():
    rows = quick() + pair(1_000_000, "memif-zero-copy")
    rows += [row("vhost" + tail, device, "vhost", pair="vhost") for tail, device in VHOST]
    rows += [row("pktgen" + tail, device, "vhost", generator="pktgen") for tail, device in VHOST]
    rows += [row("imix", lengths=IMIX), row("1500", lengths=FULL)]
    rows += [row(f"flows-{name}", flows=count) for name, count in
             (("1", 1), ("1k", 1_000), ("4m", 4_000_000), ("16m", 16_000_000))]
    rows += [row(f"services-{name}", services=count, scheduler="random") for name, count in
             (("1", 1), ("1k", 1_000), ("10k", 10_000), ("100k", 100_000))]
    rows += [row(f"backends-{count}", backends=count, services=100) for count in BACKENDS]
    rows += [row(f"scheduler-{name}", scheduler=name, measures=("throughput", "new_flows"),
                 fresh=0.5) for name in SCHEDULERS]
    rows += [row("udp", proto="udp"), row("ipv6-udp", family=6, proto="udp"),
             row("ipv6-fullnat", family=6, mode="fullnat"),
             row("dr", mode="dr", services=100), row("ipip", mode="ipip"),
             row("ipv6-dr", family=6, mode="dr", services=100),
             row("ipv6-ipip", family=6, mode="ipip")]
    rows += [row(f"new-{round(share * 100)}", fresh=share, measures=("throughput", "new_flows"))
             for share in (0.01, 0.1, 1.0)]
    rows += [row("foreign", foreign=0.1, measures=("throughput", "foreign")),
             row("workers-2", workers=2)]
    small = {"flows": 1_000, "services": 10, "scheduler": "random"}
    rows += [row(f"veth-{mode}", f"kernel-{mode}", "veth", **small) for mode in IPTABLES]
    rows += [row(f"veth-kube-proxy-{mode}", f"kube-proxy-{mode}", "veth", **small)
             for mode in (*KERNEL_MODES, "ipvs")]
    rows += [row(f"veth-{who}nftables-fullnat", f"{dut}-nftables", "veth", mode="fullnat", **small)
             for who, dut in BESIDE]
    rows += [row("veth-nftables-64k", "kernel-nftables", "veth", scheduler="random"),
             row("veth-af_packet", link="veth-af_packet", **small)]
    rows = list(beside_yardstick(rows))
    return rows + syncs("1k", 1_000, KERNEL_MODES) + syncs("10k", 10_000, KERNEL_MODES[:2])


def syncs(name, services, modes):
    """Of a whole cluster and of one endpoint, by kernel modes of ours and of kube-proxy. The nft
    variant of iptables takes minutes for 10,000 Services."""
    return [row(f"sync-{who}{mode}-{name}", f"{dut}-{mode}", "veth", ("sync",), flows=1_000,
                services=services, scheduler="random", mode="fullnat")  # the policies' defaults
            for mode in modes for who, dut in BESIDE]


def ports():
    """Over two ports of this machine. They are no pairs: one program at a time has a port."""
    devices = (("", "sluiced"), ("-macswap", "testpmd-macswap"), ("-io", "testpmd-io"),
               ("-probe", "probe"))
    rows = [row("ports" + tail, device, "ports", measures=("throughput",) if tail else
                ("throughput", "search", "latency")) for tail, device in devices]
    rows += [row(f"ports{tail}-1m", device, "ports", flows=1_000_000)
             for tail, device in devices if tail != "-io"]
    return rows + [row("ports-ipv6", link="ports", family=6),
                   row("ports-imix", link="ports", lengths=IMIX),
                   row("ports-macswap-imix", "testpmd-macswap", "ports", lengths=IMIX),
                   row("ports-flood", link="ports", fresh=0.5, measures=("throughput", "flood"))]


def smoke():
    tiny = {"flows": 500, "services": 2, "backends": 3, "idle": "auto"}
    return [row("smoke", **tiny), row("smoke-ipip", mode="ipip", family=6, proto="udp", **tiny)]


ROWS = {"quick": quick, "full": full, "smoke": smoke}
