# syntax=docker/dockerfile:1

# The images of the four programs, one target each; without a target it is the gateway's:
#
#     docker build -t cluster-gateway .
#     docker build -t tunnel-server --target tunnel-server .
#     docker build -t tunnel-agent --target tunnel-agent .
#     docker build -t cluster-gateway-controllers --target cluster-gateway-controllers .
#
# Each holds its program, the libraries that it links to, root certificates, and nothing else: no
# shell, no package manager. KubeVela's chart starts `/apiserver` and `/patch` of the gateway image.

FROM rust:1.95-bookworm AS build
# The image's own compiler, whichever patch release the checkout pins.
ENV RUSTUP_TOOLCHAIN=$RUST_VERSION
WORKDIR /src
COPY . .
# The programs on the path of requests are built twice: the second build is optimized for what the
# first one does most (docs/performance.md).
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo run --locked --release --package dist -- /programs \
    && for program in cluster-gateway tunnel-server tunnel-agent cluster-gateway-controllers; do \
        install -D --strip "/programs/$program" "/image/$program/$program" || exit 1; \
    done
RUN for program in cluster-gateway tunnel-server tunnel-agent cluster-gateway-controllers; do \
        image="/image/$program"; \
        ldd "$image/$program" | grep -o '/lib[^ ]*' | xargs cp -L --parents -t "$image" \
        && cp --parents /etc/ssl/certs/ca-certificates.crt "$image" \
        && echo 'nonroot:x:65532:65532::/:/sbin/nologin' > "$image/etc/passwd" \
        && echo 'nonroot:x:65532:' > "$image/etc/group" \
        && chroot "$image" "/$program" --version || exit 1; \
    done \
    && ln -s cluster-gateway /image/cluster-gateway/apiserver \
    && ln -s cluster-gateway /image/cluster-gateway/patch

FROM scratch AS tunnel-server
COPY --from=build /image/tunnel-server /
USER 65532:65532
ENTRYPOINT ["/tunnel-server"]

FROM scratch AS tunnel-agent
COPY --from=build /image/tunnel-agent /
USER 65532:65532
ENTRYPOINT ["/tunnel-agent"]

FROM scratch AS cluster-gateway-controllers
COPY --from=build /image/cluster-gateway-controllers /
USER 65532:65532
ENTRYPOINT ["/cluster-gateway-controllers"]

FROM scratch AS cluster-gateway
COPY --from=build /image/cluster-gateway /
USER 65532:65532
ENTRYPOINT ["/apiserver"]
